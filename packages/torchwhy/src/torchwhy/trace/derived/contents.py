"""The contents of tensors, as `torchwhy profile` saw them in steps after the recorded ones, and the recorded calls."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from torchwhy.trace.model.trace import Trace

__all__ = [
    "Contents",
    "Operator",
    "Site",
    "Trial",
    "calls_of",
    "contents",
    "operator_of",
    "operator_rows",
    "parts_of",
    "stripped",
]

_NOTED: Final = "torchwhy_contents"

Operator = tuple[str, str]
"""An operator's name, and the shapes of its inputs as `stripped` returns them."""


class Site(msgspec.Struct):
    """As `torchwhy.capture.contents.Site` is written."""

    operator: str
    stack: int
    judged: int
    again: int
    time_us: float
    values: int
    in_a_row: int
    earlier: int
    shapes: list[tuple[str, int, int]]


class Trial(msgspec.Struct):
    """As `torchwhy.capture.trials.Trial` is written."""

    operator: str
    stack: int
    shapes: str
    looks: int
    subnormal: int
    undefined: int
    weights: int
    steps: int
    reruns: int
    faster: int
    plain_us: float
    flushed_us: float
    floored_us: float
    zeros: float
    matrix: list[int]
    changing: bool
    products: int
    dense_us: float
    sparse_us: float
    layout_us: float
    all_us: float = 0.0
    subnormal_us: float = 0.0
    subnormal_calls: int = 0

    @property
    def called(self) -> Operator:
        """The operator and its shapes, as calls in a trace are found by."""
        return self.operator, stripped(self.shapes)


class _Noted(msgspec.Struct):
    """As `torchwhy.capture.contents.Contents` is written."""

    frames: list[str]
    lines: list[str]
    stacks: list[list[int]]
    sites: list[Site]
    trials: list[Trial] = []


class Contents(msgspec.Struct, frozen=True):
    """The record of a watch.

    Attributes:
        stacks: frames, innermost first.
        source: the line of source of each frame.
        sites: operators and where they are called; `stack` and `earlier` are places in `stacks`, or negative.
        trials: of the costly ones; `stack` likewise.
    """

    stacks: list[tuple[str, ...]]
    source: dict[str, str]
    sites: list[Site]
    trials: list[Trial]

    def stack_of(self, one: Site | Trial) -> tuple[str, ...]:
        """Where an operator was called; () in backward passes and optimizers."""
        return self.stacks[one.stack] if one.stack >= 0 else ()


def contents(trace: Trace) -> Contents:
    """Return what was seen; nothing where nothing was watched or the record is damaged."""
    try:
        noted = msgspec.convert(trace.info.top.get(_NOTED), _Noted)
        stacks = [tuple(noted.frames[place] for place in stack) for stack in noted.stacks]
        source = dict(zip(noted.frames, noted.lines, strict=True))
    except (msgspec.ValidationError, IndexError, ValueError):
        return Contents([], {}, [], [])
    places = [place for site in noted.sites for place in (site.stack, site.earlier)]
    if max([*places, *(trial.stack for trial in noted.trials)], default=-1) >= len(stacks):
        return Contents([], {}, [], [])
    return Contents(stacks, source, noted.sites, noted.trials)


def parts_of(trace: Trace, parts: Sequence[tuple[Trial, float]]) -> dict[Operator, float]:
    """Return the part of each operator's time that parts of the calls of some trials' sites make up, 0 to 1.

    Calls with the same shapes at other sites take as long.

    Args:
        trace: whose record.
        parts: of trials; of each the part of its calls' time, 0 to 1.
    """
    calls: dict[Operator, int] = defaultdict(int)
    at_site: dict[tuple[str, int, str], int] = defaultdict(int)
    for site in trace.derived(contents).sites:
        for shapes, count, _ in site.shapes:
            calls[site.operator, stripped(shapes)] += max(count, 0)
            at_site[site.operator, site.stack, shapes] += max(count, 0)
    found: dict[Operator, float] = defaultdict(float)
    for trial, part in parts:
        count = at_site[trial.operator, trial.stack, trial.shapes]
        found[trial.called] += part * count / max(calls[trial.called], 1)
    return {one: min(max(part, 0.0), 1.0) for one, part in found.items()}


def stripped(shapes: str | None) -> str:
    """Return the shapes of an operator's inputs without what follows the last tensor.

    >>> stripped("[[3, 4], [4], [], []]")
    '[[3, 4], [4]]'
    """
    values = parse_list(shapes)
    while values and not values[-1]:
        values = values[:-1]
    return repr(values)


def calls_of(trace: Trace, parts: Mapping[Operator, float]) -> tuple[Int32, Intervals, float]:
    """Return the recorded calls of operators, when they were, and the microseconds that parts of them take.

    Args:
        trace: whose calls, in the main thread and the steady window.
        parts: of each operator the part of its time, 0 to 1.
    """
    events = trace.events
    by_operator: dict[Operator, list[int]] = {}
    for row in operator_rows(trace, {name for name, _ in parts}).tolist():
        by_operator.setdefault(operator_of(trace, row), []).append(row)
    chosen = {one: np.array(by_operator[one], np.int32) for one in parts if one in by_operator}
    window = trace.derived(steady_window)
    times = {one: events.times_of(found).clip(window.start, window.end) for one, found in chosen.items()}
    every = np.concatenate([np.empty(0, np.int32), *chosen.values()])
    when = events.times_of(every).clip(window.start, window.end)
    part = sum(parts[one] * found.total for one, found in times.items())
    return every, when, min(part, when.total) / 1000


def operator_rows(trace: Trace, names: Set[str]) -> Int32:
    """Return the main thread's calls of operators with these names."""
    events = trace.events
    wanted = np.array([i for i, text in enumerate(events.texts) if text in names], np.int64)
    rows = events.rows(Kind.OPERATOR)
    found: Int32 = rows[np.isin(events.name[rows], wanted) & (events.lane[rows] == trace.main_lane)]
    return found


def operator_of(trace: Trace, row: int) -> Operator:
    """Return the operator of a call."""
    return trace.name(row), stripped(trace.events.text("Input Dims", row))
