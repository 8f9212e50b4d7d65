"""The steps as stacked bars: what each step's time went to."""

from __future__ import annotations

from typing import Final

from torchwhy.analysis.breakdown import Breakdown, Part
from torchwhy.analysis.names import Group
from torchwhy.analysis.recording import StepTimes, WindowTimes
from torchwhy.present.html import escaped
from torchwhy.wording import counted, duration

__all__ = ["steps_chart"]

_WIDTH: Final = 960
_HEIGHT: Final = 160
_LABELS: Final = 34
_MOST: Final = 200
"""Steps that are drawn."""


def steps_chart(breakdown: Breakdown, window: WindowTimes) -> list[str]:
    """Return lines of HTML: a bar for each step of the window, as high as its time, made of the breakdown's parts.

    One step alone is a strip: its numbers are in the breakdown. A click on a bar shows the step on the timeline.
    """
    numbers = {step.start_us: i for i, step in enumerate(window.steps)}
    known = [numbers[start] for start in breakdown.step_starts_us if start in numbers]
    if not known:
        return ["<p>No steps are marked in this recording.</p>"]
    steps = [window.steps[number] for number in known]
    parts = [part for part in breakdown.parts if any(part.steps_us)]
    if len(steps) == 1:
        return [_strip(parts, steps[0], known[0]), *_legend(parts)]
    shown = min(len(steps), _MOST)
    most = max(sum(part.steps_us[i] for part in parts) for i in range(shown)) or 1.0
    width = min(_WIDTH / shown, 90.0)
    every = max(1, int(40 // width))
    lines = [
        f'<svg class="steps" viewBox="0 0 {width * shown:.1f} {_HEIGHT + _LABELS}" role="group" '
        'aria-label="Each step as a bar made of what its time went to">'
    ]
    for i in range(shown):
        name = escaped(steps[i].title)
        lines.append(f'<g class="step" role="button" tabindex="0" data-show="step:{known[i]}">')
        lines.append(f"<title>{name}, {escaped(duration(steps[i].duration_us))}</title>")
        top = float(_HEIGHT)
        for part in parts:
            height = part.steps_us[i] / most * _HEIGHT
            top -= height
            lines.append(_piece(part, i, (width * i, top), (width * 0.92, height)))
        if i % every == 0:
            middle = width * (i + 0.46)
            short = escaped(steps[i].label[:12])
            lines.append(f'<text x="{middle:.1f}" y="{_HEIGHT + 14}">{short}</text>')
            lines.append(f'<text x="{middle:.1f}" y="{_HEIGHT + 28}">{escaped(duration(steps[i].duration_us))}</text>')
        lines.append("</g>")
    lines.append("</svg>")
    lines += _legend(parts)
    if shown < len(steps):
        lines.append(f'<p class="note">The first {shown} of {counted(len(steps), "step")} are drawn.</p>')
    return lines


def _strip(parts: list[Part], step: StepTimes, number: int) -> str:
    """The one step of a recording, from left to right."""
    whole = sum(part.steps_us[0] for part in parts) or 1.0
    left, pieces = 0.0, []
    for part in parts:
        width = part.steps_us[0] / whole * _WIDTH
        pieces.append(_piece(part, 0, (left, 0.0), (width, 14.0)))
        left += width
    said = f"{escaped(step.title)}, {escaped(duration(step.duration_us))}"
    return (
        f'<p>{said}</p><svg class="steps strip" viewBox="0 0 {_WIDTH} 14" preserveAspectRatio="none" role="group" '
        'aria-label="The step as a strip made of what its time went to">'
        f'<g class="step" role="button" tabindex="0" data-show="step:{number}"><title>{said}</title>'
        f"{''.join(pieces)}</g></svg>"
    )


def _legend(parts: list[Part]) -> list[str]:
    """The colours of the parts. Those in which the GPU is idle stand in a second list."""
    waiting = [part for part in parts if part.group == Group.IDLE]
    lists = [("", [part for part in parts if part.group != Group.IDLE]), ("GPU idle while the host", waiting)]
    return [
        f'<ul class="legend">{f"<li>{title}:</li>" if title else ""}'
        + "".join(
            f'<li><svg width="10" height="10" aria-hidden="true"><rect class="part-{escaped(part.name)}" width="10" '
            f'height="10"/></svg> {escaped(part.label)}</li>'
            for part in members
        )
        + "</ul>"
        for title, members in lists
        if members
    ]


def _piece(part: Part, step: int, corner: tuple[float, float], size: tuple[float, float]) -> str:
    said = escaped(f"{_label(part)}: {duration(part.steps_us[step])}")
    return (
        f'<rect class="part-{escaped(part.name)}" x="{corner[0]:.2f}" y="{corner[1]:.3f}" width="{size[0]:.2f}" '
        f'height="{size[1]:.3f}" data-us="{part.steps_us[step]:.3f}"><title>{said}</title></rect>'
    )


def _label(part: Part) -> str:
    return f"GPU idle while the host {part.label}" if part.group == Group.IDLE else part.label
