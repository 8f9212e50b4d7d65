"""Parts of pages about a device's memory: its curve with the peak marked, its segments, and their owners."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.allocator.segments import Segment
from torchwhy.allocator.snapshot import DeviceMemory
from torchwhy.page.counters import drawn_points
from torchwhy.present.html import View, blocks_as_html, escaped
from torchwhy.present.memory_snapshot import device_blocks
from torchwhy.wording import counted, duration, size_text

__all__ = ["memory_curve", "memory_parts"]

_POINTS: Final = 1000
"""Points of a curve."""

_WIDTH: Final = 960
_HEIGHT: Final = 160
_SEGMENTS: Final = 100
"""Segments that are drawn, the largest."""

_BAR: Final = 12
_NARROWEST: Final = 0.3
"""Pixels between blocks in use that are drawn."""


def memory_parts(memory: DeviceMemory, view: View) -> list[str]:
    """Return lines of HTML."""
    return [*memory_curve(memory), *blocks_as_html(device_blocks(memory), view), *_segments(memory.layout, view.level)]


def memory_curve(memory: DeviceMemory, note: str = "") -> list[str]:
    """Return the curve as lines of HTML; none without a history.

    The page's script reads its points from the attributes, and shows their values at the cursor.

    Args:
        memory: of one device.
        note: what distinguishes it from another curve of the page, such as "before".
    """
    if memory.peak_us is None:
        return []
    kept = drawn_points(memory.moments_us, memory.allocated, _POINTS)
    worst = int(memory.allocated.argmax())
    kept = np.union1d(kept, [worst])
    times, allocated, reserved = (values[kept] for values in (memory.moments_us, memory.allocated, memory.reserved))
    start, end = int(times[0]), max(int(times[-1]), int(times[0]) + 1)
    highest = max(int(allocated.max()), int(reserved.max()), memory.peak_bytes, 1)
    x, scale = (times - start) * (_WIDTH / (end - start)), _HEIGHT / highest
    peak = f"{size_text(memory.peak_bytes)} allocated at {duration(memory.peak_us)}"
    at = (memory.peak_us - start) * (_WIDTH / (end - start))
    line = f'x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{_HEIGHT}"'
    name = escaped(" ".join(filter(None, (memory.name, note))))
    series = (("reserved", reserved), ("allocated", allocated)) if reserved.any() else (("allocated", allocated),)
    paths = [f'<path class="{which}" d="{_area(x, values * scale)}"/>' for which, values in series]
    numbers = {"times": times, **dict(series)}
    attributes = " ".join(f'data-{key}="{" ".join(map(str, values.tolist()))}"' for key, values in numbers.items())
    step = max((end - start) // 500, 1)
    legend = "".join(
        f'<li><svg width="10" height="10" aria-hidden="true"><rect class="{which}" width="10" height="10"/></svg> '
        f"{which}</li>"
        for which, _ in series
    )
    return [
        f'<figure class="memory" {attributes}>',
        f"<figcaption>{name}: peak of {escaped(peak)}; the curve goes from {duration(start)} to "
        f"{duration(end)}, and up to {size_text(highest)}.</figcaption>",
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{name}: memory over time, with a peak of {escaped(peak)}">',
        *paths,
        f'<line class="peak" {line}><title>peak: {escaped(peak)}</title></line>',
        f'<line class="cursor" {line}/></svg>',
        f'<ul class="legend">{legend}</ul>',
        f'<p class="needs-script"><label>Moment <input type="range" min="{start}" max="{end}" step="{step}" '
        f'value="{memory.peak_us}" aria-label="Moment of {name}"></label> <output></output></p></figure>',
    ]


def _area(x: npt.NDArray[np.floating[Any]], heights: npt.NDArray[np.floating[Any]]) -> str:
    """The outline of values that each stay until the next, above the bottom of the picture."""
    points = [f"M{x[0]:.1f} {_HEIGHT}"]
    points += [f"H{left:.1f}V{_HEIGHT - height:.1f}" for left, height in zip(x.tolist(), heights.tolist(), strict=True)]
    return f"{''.join(points)}H{_WIDTH}V{_HEIGHT}Z"


def _segments(segments: tuple[Segment, ...], level: int) -> list[str]:
    """Each segment as a bar as long as it is large, with its blocks in use."""
    if not segments:
        return []
    shown = sorted(segments, key=lambda one: (-one.bytes, one.pool))[:_SEGMENTS]
    scale = _WIDTH / max(shown[0].bytes, 1)
    height = (_BAR + 3) * len(shown)
    lines = [
        f"<h{level}>Segments</h{level}>",
        "<p>Each bar is a segment; its blocks in use are dark. A segment with a block in use can't be given back.</p>",
        f'<svg class="segments" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{counted(len(segments), "segment")}, with blocks in use dark">',
    ]
    for i, segment in enumerate(shown):
        top = i * (_BAR + 3)
        said = (
            f"{size_text(segment.bytes)}, pool {segment.pool}, stream {segment.stream}: "
            f"{size_text(segment.used_bytes)} in use, at most {size_text(segment.largest_free_bytes)} free in one block"
        )
        blocks = "".join(
            f"M{left * scale:.1f} {top}h{max((right - left) * scale, _NARROWEST):.1f}v{_BAR}H{left * scale:.1f}z"
            for left, right in _merged(segment.used, _NARROWEST / scale)
        )
        lines.append(
            f'<g><title>{escaped(said)}</title><rect class="free" y="{top}" '
            f'width="{max(segment.bytes * scale, 1):.1f}" height="{_BAR}"/><path class="used" d="{blocks}"/></g>'
        )
    lines.append("</svg>")
    if len(shown) < len(segments):
        lines.append(f'<p class="note">The {len(shown)} largest of {len(segments):,} segments are drawn.</p>')
    return lines


def _merged(blocks: tuple[tuple[int, int], ...], gap: float) -> list[tuple[int, int]]:
    """Blocks without the gaps that are too narrow to be seen."""
    found: list[tuple[int, int]] = []
    for left, right in sorted(blocks):
        if found and left - found[-1][1] < gap:
            found[-1] = (found[-1][0], max(right, found[-1][1]))
        else:
            found.append((left, right))
    return found
