"""What "per step" means for a recording: its steps, with a cold first one apart, or the whole without steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.file.columns import Floats, Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.programs import unnumbered
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace

__all__ = ["Rounds", "rounds_of"]

COLD: Final = 1.3
"""A first step is cold if it is the longest and takes this many times the median of the others; with only one other
step, twice as long."""

LAG: Final = 1.02
"""The device limits the program if its work takes at least this many times as long as the steps on the host."""


@dataclass(frozen=True)
class Rounds:
    """The steps of a recording that are compared.

    Attributes:
        name: such as "ProfilerStep#5 to ProfilerStep#10", or "the whole recording".
        kind: kind of the steps, such as "ProfilerStep"; "" without steps.
        starts, ends: on the host, nanoseconds, one per step.
        completions: the time from the completion of the step before, device work included, to its own; none for a
            first step, whose predecessor isn't in the recording. Of a single step the time from its start.
        rows: of the steps' annotations, the cold one's included; they aren't part of any call path.
        cold_us: how long the first step took on the host if it was cold and left out.
        inferred: whether the steps were inferred from a repetition.
    """

    name: str
    kind: str
    starts: Int64
    ends: Int64
    completions: Int64
    rows: tuple[int, ...]
    cold_us: float | None
    inferred: bool

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def are_steps(self) -> bool:
        """Whether there are steps at all."""
        return bool(self.kind)

    @property
    def by_annotation(self) -> bool:
        """Whether an annotation that repeats is taken for the steps: it may be a part of them."""
        return self.inferred and bool(self.rows)

    @property
    def host(self) -> Floats:
        """Durations on the host, nanoseconds."""
        return (self.ends - self.starts).astype(np.float64)

    @property
    def lags(self) -> bool:
        """Whether the device takes longer than the host, so that it sets the pace."""
        same = self.host[len(self) - len(self.completions) :]
        return float(self.completions.sum()) > LAG * float(same.sum())

    @property
    def span_us(self) -> float:
        """All of them together on the host, microseconds."""
        return float(self.host.sum()) / 1000

    def of(self, times: Int64) -> Int32:
        """The index of the step each moment lies in, or -1."""
        if not len(self):
            return np.full(len(times), -1, np.int32)
        i = np.searchsorted(self.starts, times, "right") - 1
        inside = (i >= 0) & (times < self.ends[np.maximum(i, 0)])
        return np.where(inside, i, -1).astype(np.int32)


def rounds_of(trace: Trace, *, whole: bool = False) -> Rounds:
    """Return the steps to compare.

    Args:
        trace: the recording.
        whole: take all of it as one, though it may have steps.
    """
    steps = () if whole else tuple(step for step in trace.steps_found if step.duration > 0)
    if not steps:
        return _everything(trace)
    cold = steps[0] if _is_cold(trace, steps) else None
    kept = steps[1:] if cold else steps
    first, last = kept[0].name, kept[-1].name
    starts, ends = (np.array([getattr(step, key) for step in kept], np.int64) for key in ("start", "end"))
    followers = steps[1:]
    done = np.maximum.accumulate(np.array([step.device_end for step in steps], np.int64))
    begun = np.array([step.start for step in followers], np.int64)
    completions = np.maximum(done[1:] - np.maximum(done[:-1], begun), 1) if followers else done - starts
    return Rounds(
        name=first if len(kept) == 1 else f"{first} to {last}" if last != first else f"{len(kept)} times {first}",
        kind=unnumbered(first),
        starts=starts,
        ends=ends,
        completions=completions,
        rows=tuple(step.row for step in steps if step.row >= 0),
        cold_us=cold.duration / 1000 if cold else None,
        inferred=kept[0].inferred,
    )


def _everything(trace: Trace) -> Rounds:
    start, end = trace.span
    starts, ends = np.array([start], np.int64), np.array([end + 1], np.int64)
    rows = tuple(step.row for step in trace.steps_found if step.row >= 0 and not step.inferred)
    return Rounds("the whole recording", "", starts, ends, starts[:0], rows, None, inferred=False)


def _is_cold(trace: Trace, steps: tuple[Step, ...]) -> bool:
    """Whether the first step takes much longer than the others, though they do at least half as much."""
    if len(steps) < 2:
        return False
    work = _operators_in(trace, steps)
    if float(np.median(work[1:])) * 2 < work[0]:
        return False
    first, others = steps[0].duration, [step.duration for step in steps[1:]]
    return first >= max(others) and first >= (COLD if len(others) > 1 else 2.0) * float(np.median(others))


def _operators_in(trace: Trace, steps: tuple[Step, ...]) -> list[int]:
    """How many operators each step calls, those that compilation calls left out."""
    rows = trace.events.rows(Kind.OPERATOR)
    times = trace.events.ts[rows]
    times = times[trace.derived(compiled_of).compiling.overlap(times, times + 1) == 0]
    ends = np.searchsorted(times, [(step.start, step.end) for step in steps])
    return [int(last - first) for first, last in ends.tolist()]
