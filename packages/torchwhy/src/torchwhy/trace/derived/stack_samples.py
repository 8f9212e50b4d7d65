"""Where the program's Python was, as `torchwhy profile` looked every few milliseconds: places without stacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.frames import own_place
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["StackSamples", "mostly", "recorded_samples", "sampled_line", "sampled_stack", "stack_samples"]

_NOTED: Final = "torchwhy_stack_samples"
LEAST: Final = 2
"""Samples that a place needs."""


@dataclass(frozen=True)
class StackSamples:
    """Stacks of the recorded thread at some moments.

    Attributes:
        times: of the samples, ascending, nanoseconds of the trace.
        which: the stack of each, a place in the other three.
        stacks: frames, innermost first.
        own: the innermost frame of the program's own code; "" without one.
        source: what stands at that line; "" where it isn't known.
        lines: the source of every frame's line.
    """

    times: Int64
    which: Int32
    stacks: tuple[tuple[str, ...], ...]
    own: tuple[str, ...]
    source: tuple[str, ...]
    lines: dict[str, str]

    def texts(self, stack: int) -> list[str]:
        """The frames of a stack, innermost first, each with its source: "train.py(34): step | loss.backward()"."""
        return [f"{frame} | {self.lines.get(frame, '')}" for frame in self.stacks[stack]]

    def when(self, stacks: Flags) -> Intervals:
        """The time of the samples that show one of these stacks: half of the way to the samples around each."""
        if len(self.times) < LEAST:
            return Intervals.union([], [])
        between = (self.times[1:] + self.times[:-1]) // 2
        starts, ends = np.append(self.times[:1], between), np.append(between, self.times[-1:])
        chosen = stacks[self.which]
        return Intervals.union(starts[chosen], ends[chosen])

    def inside(self, when: Intervals) -> Int32:
        """The stack of each sample taken in these stretches of time."""
        place = np.searchsorted(when.starts, self.times, "right") - 1
        within = place >= 0
        within[within] = self.times[within] < when.ends[place[within]]
        return self.which[within]


def stack_samples(trace: Trace) -> StackSamples:
    """Return the samples of the thread that runs the program's loop; empty if another thread was sampled.

    A main thread that waits for the threads that work shows no line of theirs.
    """
    written = trace.info.top.get(_NOTED)
    thread = written.get("thread") if isinstance(written, dict) else None
    if isinstance(thread, int) and trace.main_lane >= 0 and trace.events.lanes[trace.main_lane].tid != str(thread):
        return _no_samples()
    return trace.derived(recorded_samples)


def _no_samples() -> StackSamples:
    return StackSamples(np.empty(0, np.int64), np.empty(0, np.int32), (), (), (), {})


def recorded_samples(trace: Trace) -> StackSamples:
    """Read the samples, of whatever thread; the result is empty for other recordings and for invalid files."""
    written = trace.info.top.get(_NOTED)
    nothing = _no_samples()
    if not isinstance(written, dict):
        return nothing
    try:
        frames, lines = [str(one) for one in written["frames"]], [str(one) for one in written["lines"]]
        stacks = [[int(place) for place in one] for one in written["stacks"]]
        times = np.array(written["times_ns"], np.int64) - trace.info.base_ns
        which = np.array(written["which"], np.int32)
        names = tuple(tuple(frames[place] for place in one) for one in stacks)
        source = dict(zip(frames, lines, strict=True))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return nothing
    if times.shape != which.shape or times.ndim != 1 or ((which < 0) | (which >= len(names))).any():
        return nothing
    order = np.argsort(times, kind="stable")
    own = tuple(map(own_place, names))
    return StackSamples(times[order], which[order], names, own, tuple(source.get(one, "") for one in own), source)


def sampled_stack(trace: Trace, rows: Int32, *, least: float = 0.5) -> tuple[str, ...]:
    """The stack in which the program's thread is mostly seen at some calls, from its innermost own line outwards.

    Samples taken in the calls are used, if there are enough; else those between the operators before and after each:
    there its thread is in the line that makes it, mostly.

    Args:
        trace: where the rows are from.
        rows: host events.
        least: the part of the samples that one line needs.
    """
    samples, events = trace.derived(stack_samples), trace.events
    if not len(samples.times) or not len(rows):
        return ()
    if inside := mostly(samples, events.times_of(rows), least):
        return inside
    begins, ends = trace.derived(_main_calls)
    before = np.searchsorted(ends, events.ts[rows], "right") - 1
    after = np.searchsorted(begins, events.end[rows], "left")
    starts = np.where(before >= 0, ends[np.maximum(before, 0)], events.ts[rows]) if len(begins) else events.ts[rows]
    stops = (
        np.where(after < len(begins), begins[np.minimum(after, len(begins) - 1)], events.end[rows])
        if len(begins)
        else events.end[rows]
    )
    return mostly(samples, Intervals.union(starts, stops), least)


def _main_calls(trace: Trace) -> tuple[Int64, Int64]:
    """When the outermost operators of the loop's thread begin and end, both ascending."""
    outer = trace.derived(outer_operators)
    outer = outer[trace.events.lane[outer] == trace.main_lane]
    return trace.events.ts[outer], np.sort(trace.events.end[outer])


def sampled_line(trace: Trace, when: Intervals, *, least: float = 0.5) -> tuple[str, str]:
    """The program's own line in which it mostly is during some stretches, with its source; ("", "") without one.

    A comprehension and the function around it are one line; the frame of it that most samples show is returned.
    """
    samples = trace.derived(stack_samples)
    frames = Counter(samples.own[i] for i in samples.inside(when).tolist())
    lines: Counter[str] = Counter()
    for frame, count in frames.items():
        lines[_without_function(frame)] += count
    line, count = lines.most_common(1)[0] if lines else ("", 0)
    if not line or count < max(LEAST, least * lines.total()):
        return "", ""
    frame = max((frame for frame in frames if _without_function(frame) == line), key=lambda frame: frames[frame])
    return frame, samples.lines.get(frame, "")


def _without_function(frame: str) -> str:
    return frame.rpartition(": ")[0]


def mostly(samples: StackSamples, when: Intervals, least: float, fewest: int = LEAST) -> tuple[str, ...]:
    """The most frequent stack of the own line that samples taken in some stretches show, from that line outwards.

    Args:
        samples: all of them.
        when: the stretches.
        least: the part of the samples there that the line needs; () for less.
        fewest: how many samples it needs.
    """
    seen = Counter(samples.inside(when).tolist())
    lines: Counter[str] = Counter()
    for i, count in seen.items():
        lines[samples.own[i]] += count
    if not lines:
        return ()
    line, count = lines.most_common(1)[0]
    if not line or count < max(fewest, least * lines.total()):
        return ()
    stack = samples.stacks[max((i for i in seen if samples.own[i] == line), key=lambda i: seen[i])]
    return stack[stack.index(line) :]
