"""A timeline as one block of bytes, which `web/timeline.js` takes apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from torchwhy.page.encoding import packed, zigzag
from torchwhy.page.timeline import LONGEST_NAME, Timeline
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.model.intervals import Intervals

__all__ = ["block_of"]


def block_of(timeline: Timeline, *, unit: int = 1, notes: Sequence[str] = ()) -> bytes:
    """Return a timeline in its written form.

    An event is the gap to the one before in its row, its duration, and the number of its name. Its kind is that of its
    name, with exceptions.

    Args:
        timeline: what to write.
        unit: nanoseconds that starts and ends of events are rounded down to a multiple of.
        notes: sentences in addition to the timeline's own.
    """
    origin = min(0, int(timeline.start.min(initial=0))) // unit
    start, end = timeline.start // unit - origin, timeline.end // unit - origin
    gap = start.copy()
    gap[1:] -= end[:-1]
    row_begins = np.cumsum(timeline.row_sizes) - timeline.row_sizes
    firsts = row_begins[timeline.row_sizes > 0]
    gap[firsts] = start[firsts]
    usual = np.zeros(len(timeline.names), np.uint8)
    usual[timeline.name] = timeline.kind
    unusual = np.flatnonzero(usual[timeline.name] != timeline.kind)
    stretches = [target.stretches for target in timeline.findings] + list(timeline.parts.values())
    evidence = [rows for target in timeline.findings for rows in target.evidence]
    header = {
        "events": len(timeline),
        "unit": unit,
        "origin": origin,
        "longestName": LONGEST_NAME,
        "notes": [*timeline.notes, *notes],
        "window": timeline.window,
        "bands": [
            {"label": band.label, "side": band.side, "rows": band.rows, "source": band.source}
            for band in timeline.bands
        ],
        "steps": [[step.name, step.start, step.end, step.device_end] for step in timeline.steps],
        "findings": [
            {
                "title": target.title,
                "stake": target.stake,
                "stretches": len(target.stretches),
                "evidence": [len(events) for events in target.evidence],
            }
            for target in timeline.findings
        ],
        "arguments": [[column.label, len(column.events), len(column.texts)] for column in timeline.arguments],
        "parts": [[name, len(when)] for name, when in timeline.parts.items()],
        "counters": [
            {
                "label": curve.label,
                "unit": curve.unit,
                "points": len(curve.times),
                "divisor": curve.divisor,
                "means": 0 if curve.means is None else len(curve.means),
            }
            for curve in timeline.counters
        ],
    }
    return packed(
        header,
        {
            "rows": timeline.row_sizes,
            "gap": gap,
            "duration": end - start,
            "name": timeline.name,
            "kind": usual,
            "unusual": _steps(unusual),
            "unusualKind": timeline.kind[unusual],
            "work": _steps(timeline.work),
            "launch": zigzag(_steps(timeline.launch)),
            "backward": _steps(timeline.backward),
            "forward": zigzag(_steps(timeline.forward)),
            "stretchGap": zigzag(_joined(_gaps(when) for when in stretches)),
            "stretchLength": _joined(when.lengths for when in stretches),
            "evidence": _joined(_steps(rows) for rows in evidence),
            "pathGap": zigzag(_gaps(Intervals(timeline.path.start, timeline.path.end))),
            "pathLength": timeline.path.end - timeline.path.start,
            "pathEvent": zigzag(_steps(timeline.path.event)),
            "counterTime": zigzag(_joined(_steps(curve.times) for curve in timeline.counters)),
            "counterValue": zigzag(_joined(_steps(curve.values) for curve in timeline.counters)),
            "counterMean": zigzag(
                _joined(_steps(curve.means) for curve in timeline.counters if curve.means is not None)
            ),
            "argumentEvent": _joined(_steps(column.events) for column in timeline.arguments),
            "argumentValue": _joined(column.values.astype(np.int64) for column in timeline.arguments),
            "argumentTexts": "\0".join(text for column in timeline.arguments for text in column.texts),
            "names": "\0".join(timeline.names),
            "shortNames": "\0".join(timeline.short_names),
            "category": "\0".join(timeline.category),
        },
    )


def _steps(values: npt.ArrayLike) -> Int64:
    """From each value to the next, the first from 0."""
    found: Int64 = np.asarray(values, np.int64).copy()
    found[1:] -= found[:-1].copy()
    return found


def _gaps(when: Intervals) -> Int64:
    """From each end to the next start, the first from 0."""
    return when.starts - np.concatenate((np.zeros(min(len(when), 1), np.int64), when.ends[:-1]))


def _joined(parts: Iterable[Int64]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *parts])
