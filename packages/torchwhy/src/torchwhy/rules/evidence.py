"""Rows of a trace as evidence a person can look up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Evidence
from torchwhy.trace.derived.stack_samples import sampled_stack
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import without_line
from torchwhy.trace.meaning.kinds import GPU_WORK
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns

__all__ = ["evidence", "most_first", "where"]

_FRAMES: Final = 64
"""Frames of a stack; between an operator and the program's own line are about three frames for each module of a
model."""


def evidence(
    trace: Trace, rows: npt.ArrayLike, *, times: npt.ArrayLike | None = None, limit: int = 5, note: str = ""
) -> tuple[Evidence, ...]:
    """Group rows by name, the most time first.

    Args:
        trace: where the rows are from.
        rows: events.
        times: the nanoseconds of each that matter; their durations where None.
        limit: names to keep.
        note: for every entry; without one, of an entry of which only a part matters, how long it takes in all.
    """
    events, chosen = trace.events, np.asarray(rows, np.int32)
    if not len(chosen):
        return ()
    spent = events.dur[chosen] if times is None else np.asarray(times, np.int64)
    names, which = np.unique(events.name[chosen], return_inverse=True)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, which, spent)
    found = []
    for i in most_first(total, [events.texts[int(name)] for name in names])[:limit]:
        same = np.flatnonzero(which == i)
        longest = chosen[same[spent[same] == spent[same].max()]]
        row = int(longest[np.argmin(events.ts[longest])])
        stack = () if events.kind[row] in GPU_WORK else _stack(trace, row, chosen[same])
        time_us, start_us = int(total[i]) / 1000, int(events.ts[row]) / 1000
        all_of_it = chosen[same]
        whole = int(events.dur[all_of_it].sum())
        what = note or (f"of {duration_ns(whole)} in all" if total[i] < whole else "")
        found.append(Evidence(trace.name(row), len(same), time_us, start_us, where(trace, row), stack, what, all_of_it))
    return tuple(found)


def _stack(trace: Trace, row: int, alike: Int32) -> tuple[str, ...]:
    """The stack of an event of the host: as recorded, with the line that samples show; else that of the samples.

    The profiler notes where a function begins, samples the line it is at.
    """
    recorded, sampled = tuple(trace.stack(row)), sampled_stack(trace, alike)
    if not recorded or not sampled:
        return (recorded or sampled)[:_FRAMES]
    function = without_line(sampled[0])
    place = next((i for i, frame in enumerate(recorded) if without_line(frame) == function), len(recorded))
    return (
        (*recorded[:place], *sampled[:1], *recorded[place + 1 :])[:_FRAMES]
        if place < len(recorded)
        else recorded[:_FRAMES]
    )


def most_first(total: npt.NDArray[np.number], texts: Sequence[str]) -> list[int]:
    """Order groups by their totals, and equal ones by their texts: the order of a file's events says nothing."""
    return sorted(range(len(texts)), key=lambda i: (-total[i], texts[i]))


def where(trace: Trace, row: int) -> str:
    """The thread, or the device and stream, of an event."""
    if trace.events.kind[row] in GPU_WORK:
        one = np.array([row], np.int32)
        return f"GPU {devices_of(trace.events, one)[0]} stream {streams_of(trace.events, one)[0]}"
    return trace.lane(row).label
