"""What passed in a run before its steps, and outside of what was recorded, which no recorded step shows."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Final

import msgspec
import numpy as np

from torchwhy.trace.derived.stack_samples import recorded_samples
from torchwhy.trace.derived.steady_state import unrecorded_steps
from torchwhy.trace.meaning.frames import without_numbers
from torchwhy.trace.model.trace import Trace

__all__ = ["RunLine", "RunStretch", "RunTimes", "run_times"]

_NOTED: Final = "torchwhy_run_times"

_FEW: Final = 20
"""Fewer samples of the window say nothing about a line that isn't among them."""

_EXPECTED: Final = 8
"""A line needs this number of expected samples in the window, from its share of the other time. The chance of two or
fewer is then 1 in 70."""

_RARER: Final = 1 / 3
"""The recording leaves out a function if the recorded time has at most this share of its expected samples."""


class RunLine(msgspec.Struct, frozen=True):
    """A line of the program and its time in a part of the run, with what it calls.

    `source`: what stands there; `import_us`: of that time, what modules that it imports take.
    """

    line: str
    source: str
    time_us: float
    import_us: float


class RunStretch(msgspec.Struct, frozen=True):
    """A part of the run: how long it is, and the program's own lines with the most of it."""

    time_us: float
    lines: tuple[RunLine, ...]


class RunTimes(msgspec.Struct, frozen=True):
    """The time of a run in which `torchwhy profile` found steps.

    Attributes:
        run_us: the whole run, recording included.
        steps: how many had passed when they were found; optimizer: whether the program had an optimizer then.
        start_up: from the program's begin until then.
        outside: from then on, without what was recorded. Its lines are those that take a larger part of it than of the
            recording; of a function of which all lines together do so, the longest one with the time of all.
        takes_rows: whether a DataLoader takes rows one by one out of tensors that lie in memory.
    """

    run_us: float
    steps: int
    optimizer: bool
    start_up: RunStretch
    outside: RunStretch
    takes_rows: bool = False


class _Stretch(msgspec.Struct):
    """As `torchwhy.capture.run_watch.Stretch` writes it."""

    seconds: float
    lines: list[tuple[str, str, float, float]]


class _Noted(msgspec.Struct):
    """As `torchwhy.capture.run_watch.RunTimes` writes it."""

    seconds: float
    steps: int
    optimizer: bool
    later_steps: int
    start_up: _Stretch
    outside: _Stretch
    takes_rows: bool = False


def run_times(trace: Trace) -> RunTimes | None:
    """Return them; None in other recordings, and where the file makes no sense."""
    try:
        noted = msgspec.convert(trace.info.top.get(_NOTED), _Noted)
    except msgspec.ValidationError:
        return None
    parts = (noted.start_up, noted.outside)
    lines = [line for part in parts for line in part.lines]
    possible = (
        0 < noted.seconds < inf and noted.steps >= 0 and all(0 <= part.seconds <= noted.seconds for part in parts)
    )
    if not possible or any(not 0 <= imports <= spent <= noted.seconds for _, _, spent, imports in lines):
        return None
    start_up, outside = (
        RunStretch(
            1e6 * part.seconds, tuple(RunLine(line, text, 1e6 * us, 1e6 * im) for line, text, us, im in part.lines)
        )
        for part in parts
    )
    outside = _left_out(trace, outside, noted.later_steps)
    return RunTimes(1e6 * noted.seconds, noted.steps, noted.optimizer, start_up, outside, noted.takes_rows)


def _left_out(trace: Trace, outside: RunStretch, steps: int) -> RunStretch:
    """The part outside of the recording with the functions, else lines, that it has more of, by samples of both.

    A short recording has few samples. Then the usual step decides: where as many as there were take less than half of
    the time outside, something else takes it.
    """
    samples, unrecorded = trace.derived(recorded_samples), trace.derived(unrecorded_steps)
    seen = Counter(samples.own[which] for which in samples.which.tolist())
    few = seen.total() < _FEW
    if not outside.time_us or (
        few and (not len(unrecorded) or 2 * steps * float(np.median(unrecorded)) > outside.time_us)
    ):
        return RunStretch(outside.time_us, ())

    def is_rarer(lines: list[RunLine], recorded: int) -> bool:
        expected = seen.total() * sum(one.time_us for one in lines) / outside.time_us
        return not recorded if few else expected >= _EXPECTED and recorded <= _RARER * expected

    by_function: Counter[str] = Counter()
    for line, count in seen.items():
        by_function[without_numbers(line)] += count
    functions: dict[str, list[RunLine]] = {}
    for one in outside.lines:
        functions.setdefault(without_numbers(one.line), []).append(one)
    found = []
    for function, lines in functions.items():
        if not is_rarer(lines, by_function[function]):
            lines = [one for one in lines if is_rarer([one], seen[one.line])]
        if lines:
            spent, imports = sum(one.time_us for one in lines), sum(one.import_us for one in lines)
            found.append(RunLine(lines[0].line, lines[0].source, spent, imports))
    return RunStretch(outside.time_us, tuple(sorted(found, key=lambda one: -one.time_us)))
