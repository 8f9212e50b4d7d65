"""The lines of the program in which most of the window passes, and what the record shows about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final

import msgspec
import numpy as np

from torchwhy.analysis.line_remarks import bound_and_rate, operators_of, remarks_on, time_of_calls
from torchwhy.finding import Finding
from torchwhy.trace.derived.forward_pass import work_of
from torchwhy.trace.derived.program_lines import Caller, ProgramLine, program_lines, steady_steps
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["CostlyLine", "LineOperator", "costly_lines"]

LEAST: Final = 0.1
"""A line with a smaller part of the window is left out."""

MOST: Final = 3

_MOST_OF_IT: Final = 0.6
"""Share of a function's time; a line that takes more stands alone."""

_EXPLAINED: Final = 0.5
"""Share of a line's time. A line is left to the findings if they name at least this share."""


_GENERAL: Final = ("cpu-hotspot", "between-steps-gap", "step-tail", "elementwise-chain", "dispatch-flood")
"""Rules that say where time goes rather than why."""


class LineOperator(msgspec.Struct, frozen=True):
    """Calls of one operator with the same shapes that a line makes in the window.

    `time_us`: of the device's work launched in them where a device was used, else their own.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    calls: int
    time_us: float


class CostlyLine(msgspec.Struct, frozen=True):
    """A line of the program with its time in the window, which is part of no finding that asks for a change.

    Attributes:
        line: as "train.py(34): step"; source: what stands there. "" where unknown.
        others: further lines of its function that are counted with it.
        caller, caller_source: the line of the program that makes the function around it run several times, else the one
            that calls it; runs: of that function in the window in which the line makes its calls, a generator's each
            time it continues; 0 where that wasn't recorded.
        time_us, share: of the window: its operators, their backward pass and the Python between them; of the device's
            work where a device was used.
        backward_us: of the backward pass alone.
        python_us: of Python between operators alone.
        operators: those that take the most time.
        bound: "arithmetic", "memory", "overhead" (calls that are short, and Python between them), "python" or "".
        gflop_s, gb_s: what the operators reach whose sizes are known; None without.
        remarks: sentences on what the record shows.
    """

    line: str
    source: str
    others: tuple[str, ...]
    caller: str
    caller_source: str
    runs: int
    time_us: float
    share: float
    backward_us: float
    python_us: float
    operators: tuple[LineOperator, ...]
    bound: str
    gflop_s: float | None
    gb_s: float | None
    remarks: tuple[str, ...]


def costly_lines(trace: Trace, findings: Sequence[Finding] = ()) -> tuple[CostlyLine, ...]:
    """Return the lines with a tenth of the window or more, the most time first; () where none is known.

    Args:
        trace: the program.
        findings: what rules found: a line most of whose time they name is left out.
    """
    window, explained = trace.derived(steady_window), Intervals.union([], [])
    for one in findings:
        if one.severity != "info" and one.time_us and one.stretches is not None and one.slug not in _GENERAL:
            explained = explained | one.stretches
    found: list[CostlyLine] = []
    for line, others in _by_function(trace):
        when = line.when.clip(window.start, window.end)
        share = window.share(when)
        if share < LEAST or len(found) == MOST:
            break
        if (when & explained).total <= _EXPLAINED * when.total:
            found.append(_described(trace, line, others, when, share))
    return tuple(found)


def _by_function(trace: Trace) -> list[tuple[ProgramLine, tuple[str, ...]]]:
    """Lines with the others that are counted with them: all of a function that runs often, if none takes most of it."""
    steps, functions = max(steady_steps(trace), 1), dict[str, list[ProgramLine]]()
    for line in trace.derived(program_lines):
        functions.setdefault(line.function, []).append(line)
    found: list[tuple[ProgramLine, tuple[str, ...]]] = []
    for lines in functions.values():
        when = reduce(or_, (line.when for line in lines))
        runs = max((line.callers[0].calls for line in lines if line.callers), default=0)
        if runs < 2 * steps or lines[0].when.total > _MOST_OF_IT * when.total:
            found += [(line, ()) for line in lines]
            continue
        calls, backward = (
            np.sort(np.concatenate([getattr(line, name) for line in lines])) for name in ("calls", "backward")
        )
        python = reduce(or_, (line.python for line in lines))
        whole = replace(lines[0], calls=calls, backward=backward, python=python, when=when)
        found.append((whole, tuple(line.line for line in lines[1:])))
    return sorted(found, key=lambda one: (-one[0].when.total, one[0].line))


def _described(trace: Trace, line: ProgramLine, others: tuple[str, ...], when: Intervals, share: float) -> CostlyLine:
    bound, gflop_s, gb_s = bound_and_rate(trace, line)
    caller, times = _caller(line), time_of_calls(trace)
    return CostlyLine(
        line.line,
        line.source,
        others,
        caller.line,
        caller.source,
        caller.calls,
        when.total / 1000,
        share,
        (work_of(trace, line.backward) & when).total / 1000,
        line.python.total / 1000,
        tuple(
            LineOperator(trace.name(int(rows[0])), shapes, len(rows), int(np.sum(times[rows])) / 1000)
            for shapes, rows in operators_of(trace, line)
        ),
        bound,
        gflop_s,
        gb_s,
        remarks_on(trace, line),
    )


def _caller(line: ProgramLine) -> Caller:
    """The caller that says most: the first that runs what it calls several times, else the innermost."""
    for inner, outer in pairwise(line.callers):
        if outer.calls and inner.calls >= 2 * outer.calls:
            return inner
    innermost = next(iter(line.callers), Caller("", "", 0))
    return innermost if innermost.calls != 1 else Caller("", "", 1)  # of a main function there is nothing to say
