"""Where the window goes by the program's own lines: their operators, the backward pass of these, Python in between."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.forward_pass import backward_of, work_of
from torchwhy.trace.derived.host_activity import otherwise_engaged, outer_operators, profiling
from torchwhy.trace.derived.ownership import own_frames
from torchwhy.trace.derived.stack_samples import mostly, stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.frames import BACKWARD_CALL, code_of, line_of, own_frame, recorder_runs, without_line
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import BACKWARD
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Caller", "ProgramLine", "program_lines", "steady_steps"]

_SOME: Final = 0.005
"""Calls that seem to be of one line and take a smaller part of the window are treated together with similar calls."""

_MOST: Final = 200
"""Groups of calls whose line is looked up."""

_SURE: Final = 0.9
"""The part of the samples at some calls that one line needs."""

_FEWEST: Final = (3, 3, 6)
"""Samples that it needs: of calls alike and with the same turn, of calls alike, of calls of one operator. Those of a
function have no line in common but its first.
"""


_OF_PYTHON: Final = 5
"""Samples of Python that a line needs: with fewer the time they stand for is a guess."""


@dataclass(frozen=True)
class Caller:
    """A line of the program around another one.

    Attributes:
        line, source: as in `ProgramLine`.
        calls: how often the function that it calls runs in the window; 0 where that wasn't recorded.
    """

    line: str
    source: str
    calls: int


@dataclass(frozen=True)
class ProgramLine:
    """A line of the program and the time that passes in it.

    Attributes:
        line: as "train.py(34): step"; of a function where it begins if the line in it isn't known.
        source: what stands there; "" where it isn't known.
        function: that it stands in, as the profiler names it.
        callers: lines of the program around it, innermost first.
        calls: outermost operators that it calls outside of the backward pass, by start.
        backward: nodes of the backward pass that belong to these.
        python: when it runs between operators, by samples of the stack.
        when: all of its time: of the device's work where there is a device, else of the calls, their backward pass and
            Python.
    """

    line: str
    source: str
    function: str
    callers: tuple[Caller, ...]
    calls: Int32
    backward: Int32
    python: Intervals
    when: Intervals


def steady_steps(trace: Trace) -> int:
    """How many steps the steady window has; 0 in a recording without steps."""
    return sum(step.start >= trace.derived(steady_window).start for step in trace.steps_found)


def program_lines(trace: Trace) -> tuple[ProgramLine, ...]:
    """Find them, the most time first; `trace.derived(program_lines)` does it once. () where no line is known."""
    samples = trace.derived(stack_samples)
    source = samples.lines
    calls: dict[str, list[Int32]] = defaultdict(list)
    around: dict[str, tuple[str, ...]] = {}
    for mine, line, callers in _placed(trace):
        calls[line].append(mine)
        around.setdefault(line, callers)
    python = _python(trace)
    found = []
    for line in {**calls, **python}:
        rows = np.sort(np.concatenate(calls[line])) if line in calls else np.empty(0, np.int32)
        between, callers = python.get(line, (Intervals.union([], []), ()))
        backward = backward_of(trace, rows) if len(rows) else rows
        when = work_of(trace, np.concatenate((rows, backward)))
        when = when if trace.has_gpu else when | between
        function = _function_of(trace, rows[:1]) or _bare(line)
        chain = _callers(trace, rows, _sampled_callers(trace, line, around.get(line) or callers), source)
        found.append(ProgramLine(line, source.get(line, ""), function, chain, rows, backward, between, when))
    return tuple(sorted(found, key=lambda one: (-one.when.total, one.line)))


def _placed(trace: Trace) -> list[tuple[Int32, str, tuple[str, ...]]]:
    """The outermost calls of the program's thread in the window, in groups that one line makes, it seems.

    Each group has its line and the lines around it. Calls that samples don't place are of the line that all others like
    them are of; if these are of several, or of no line, they are treated together.

    Nodes of the backward pass count for the line of their forward pass; those of no operator stay with the line that
    asks for gradients.
    """
    events, window = trace.events, trace.derived(steady_window)
    rows = trace.derived(outer_operators)
    rows = rows[(events.lane[rows] == trace.main_lane) & events.begin_in(rows, window.start, window.end)]
    rows = rows[events.covered(rows, trace.derived(otherwise_engaged)) == 0]
    rows = rows[~events.are(BACKWARD, rows) | ~np.isin(rows, trace.derived(autograd).backward)]
    frames = trace.derived(own_frames)[rows] if trace.has_stacks else np.full(len(rows), -1)
    function = np.where(frames >= 0, trace.derived(_functions)[events.name[frames]], -1)
    alike = _numbers(function, events.name[rows], events.text_ids("Input Dims", rows))
    keys = (  # by their turn among equal operators in a call of the function; by shapes, operator, function alone
        _numbers(alike, _turns(_numbers(alike, frames, trace.step_of(rows)))),
        alike,
        _numbers(function, events.name[rows]),
        _numbers(function),
    )
    least, found = _SOME * (window.end - window.start), []
    lines: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)  # of calls that are alike
    rest = np.arange(len(rows))
    for key, fewest in zip(keys, (*_FEWEST, 0), strict=True):
        which = key[rest]
        spent = np.bincount(which, events.dur[rows[rest]])
        sure = np.zeros(len(spent), np.bool_)
        for i in np.argsort(-spent, kind="stable")[:_MOST].tolist():
            mine = rest[which == i]
            if len(mine) and (spent[i] >= least or key is keys[-1]):
                line, callers, exact = _place(trace, rows[mine], fewest)
                if exact and key is keys[0]:
                    lines[int(alike[mine[0]])][line] = callers
                elif not exact and key is alike and len(lines[i]) == 1 and _seen(trace, rows[mine]) <= {*lines[i]}:
                    ((line, callers),) = lines[i].items()
                if exact or (line and key is not keys[0]):
                    sure[i] = True
                    found.append((rows[mine], line, callers))
        rest = rest[~sure[which]]
    return found


def _functions(trace: Trace) -> Int32:
    """For each name in the file the name of its function.

    One that ran when recording began has no line; where the file has one function of that name, it is that.
    """
    events = trace.events
    found = np.arange(len(events.texts), dtype=np.int32)
    known: dict[str, list[int]] = defaultdict(list)
    for name in np.unique(events.name[events.rows(Kind.PYTHON)]).tolist():
        if code_of(events.texts[name]):
            known[without_line(events.texts[name])].append(name)
    for unknown, names in known.items():
        lines = [name for name in names if events.texts[name] != unknown]
        if len(lines) == 1:
            found[names] = lines[0]
    return found


def _function_of(trace: Trace, rows: Int32) -> str:
    """The function of the program that makes a call, as the profiler names it; "" where that wasn't recorded."""
    frames = trace.derived(own_frames)[rows] if trace.has_stacks else rows[:0]
    names = [int(trace.derived(_functions)[trace.events.name[frame]]) for frame in frames.tolist() if frame >= 0]
    return trace.events.texts[names[0]] if names else ""


def _numbers(*keys: npt.NDArray[np.integer[Any]]) -> Int64:
    """A number for each row, the same where all keys are."""
    found = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        numbers = np.unique(key, return_inverse=True)[1].reshape(-1)
        found = np.unique(found * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1].reshape(-1)
    return found


def _turns(which: Int64) -> Int64:
    """For each row, how many rows before it have the same number."""
    order = np.argsort(which, kind="stable")
    fresh = np.flatnonzero(np.diff(which[order], prepend=-1))
    found = np.empty(len(which), np.int64)
    found[order] = np.arange(len(which)) - np.repeat(fresh, np.diff(np.append(fresh, len(which))))
    return found


def _place(trace: Trace, rows: Int32, fewest: int) -> tuple[str, tuple[str, ...], bool]:
    """The line that makes some calls, the program's lines around it, innermost first, and whether samples show it.

    The profiler notes where a function begins, samples the line it is at. Those between operators don't count: they are
    of the line whose Python takes longest, which need not be that of the call.
    """
    recorded = trace.stack(int(rows[np.argmax(trace.events.dur[rows])]))
    samples, when = trace.derived(stack_samples), trace.events.times_of(rows)
    sampled = mostly(samples, when, _SURE, fewest) if fewest else ()
    line = own_frame(recorded)
    if sampled and (not line or _bare(line) == _bare(sampled[0])):
        return sampled[0], _own_lines(sampled)[1:], True
    return line, tuple(map(line_of, _own_lines(recorded)[1:])), False


def _seen(trace: Trace, rows: Int32) -> set[str]:
    """The lines that samples taken in some calls show."""
    samples = trace.derived(stack_samples)
    return {samples.own[i] for i in samples.inside(trace.events.times_of(rows)).tolist()}


def _own_lines(stack: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """The program's own frames; frames of samples know their line in a script, too."""
    return tuple(frame for frame in stack if code_of(frame) == "program")


def _sampled_callers(trace: Trace, line: str, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines around one, with the numbers that most samples show which go the same way; as they are without any."""
    samples, way = trace.derived(stack_samples), tuple(map(_bare, lines))
    alone = list(map(_bare, trace.derived(_defined))).count(_bare(line)) < 2
    chains: Counter[tuple[str, ...]] = Counter()
    for stack, count in zip(*np.unique(samples.which, return_counts=True), strict=True):
        own = _own_lines(samples.stacks[int(stack)])
        here = bool(own) and (own[0] == line or (alone and _bare(own[0]) == _bare(line)))
        if here and tuple(map(_bare, own[1:])) == way:
            chains[own[1:]] += int(count)
    return chains.most_common(1)[0][0] if chains else lines


def _bare(frame: str) -> str:
    """A frame without the number of its line."""
    return line_of(without_line(frame))


def _defined(trace: Trace) -> tuple[str, ...]:
    """The functions of the program that ran, by the lines where they begin."""
    names = np.unique(trace.events.name[trace.events.rows(Kind.PYTHON)]).tolist()
    texts = [trace.events.texts[name] for name in names]
    return tuple(text for text in texts if code_of(text) and without_line(text) != text)


def _callers(trace: Trace, rows: Int32, lines: tuple[str, ...], source: dict[str, str]) -> tuple[Caller, ...]:
    """The lines around some calls, with how often what they call runs; a recursive function at that depth."""
    found = []
    frames = trace.derived(own_frames)[rows] if trace.has_stacks else np.full(len(rows), -1)
    for line in lines:
        frames = np.unique(frames[frames >= 0])
        found.append(Caller(line, source.get(line, ""), len(frames)))
        above = trace.frames.parent[frames]
        frames = trace.derived(own_frames)[above[above >= 0]] if len(frames) else frames
        frames = frames[frames >= 0]
        names, which = np.unique(trace.events.name[frames], return_inverse=True)
        same = np.array([_bare(trace.events.texts[name]) == _bare(line) for name in names.tolist()], np.bool_)
        frames = frames[same[which.reshape(-1)]]
    return tuple(found)


def _python(trace: Trace) -> dict[str, tuple[Intervals, tuple[str, ...]]]:
    """When the program's thread runs Python between operators, by line, and that line's callers."""
    samples, events, window = trace.derived(stack_samples), trace.events, trace.derived(steady_window)
    if not len(samples.times):
        return {}
    outer = trace.derived(outer_operators)
    outer = outer[events.lane[outer] == trace.main_lane]
    between = Intervals.union([window.start], [window.end]) - events.times_of(outer)
    between = between - trace.derived(otherwise_engaged) - trace.derived(profiling)
    seen = Counter(samples.inside(between).tolist())
    mine = [own if _is_python(stack) else "" for own, stack in zip(samples.own, samples.stacks, strict=True)]
    lines: Counter[str] = Counter()
    for stack, count in seen.items():
        lines[mine[stack]] += count
    own = np.array(mine, np.str_)
    found = {}
    for line, count in lines.items():
        if line and count >= _OF_PYTHON:
            longest = max((i for i in seen if mine[i] == line), key=lambda i: seen[i])
            when = samples.when(own == line) & between
            found[line] = (when, _own_lines(samples.stacks[longest])[1:])
    return found


def _is_python(stack: tuple[str, ...]) -> bool:
    """Whether a sample shows the program's Python: not the backward pass between its nodes, not the recorder."""
    return not (recorder_runs(stack) or (len(stack) > 0 and BACKWARD_CALL.names(stack[0])))
