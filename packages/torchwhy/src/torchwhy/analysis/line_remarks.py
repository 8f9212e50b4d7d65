"""Remarks on the work of a line: sizes, rates, repetitions, and the readers of its results.

Each remark is a fact of the events, computed from names, shapes, values and times. None says that anything is wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.flops import flops_of, moved_by
from torchwhy.trace.derived.forward_pass import differentiated, forward_pass
from torchwhy.trace.derived.ownership import own_frames
from torchwhy.trace.derived.processor_time import BUSY, waited_share
from torchwhy.trace.derived.program_lines import ProgramLine, steady_steps
from torchwhy.trace.derived.result_shapes import result_shape
from torchwhy.trace.derived.shapes import WIDTH, Shape, dtypes, elements, growth, shapes, tensors, values
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Floats, Int32, Int64
from torchwhy.trace.meaning.arithmetic import (
    CONVOLUTION_BACKWARD,
    CONVOLVING,
    ELEMENTWISE,
    FACTORISATION,
    MEMORY_SPEED,
    READS_ALL,
    SCANNING,
)
from torchwhy.trace.meaning.frames import TORCHWHYS, code_of, line_of, short_frame
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, BACKWARD, HEAVY, RANDOM, SLICE, UPDATE
from torchwhy.trace.meaning.programs import kin
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups
from torchwhy.trace.tables.short_operators import short_operators
from torchwhy.wording import digits, duration, enumeration, percent

__all__ = ["bound_and_rate", "operators_of", "remarks_on", "shape_text", "time_of_calls"]

_SHOWN: Final = 2
_REMARKS: Final = 3

_MOSTLY: Final = 0.5
"""An operator with at least this share of a line's time describes the line."""

_INTENSE: Final = 10.0
"""Operations for each byte, from which arithmetic decides and not memory, on a processor."""

_SAMPLE: Final = 20
"""This number of calls represents all similar calls."""

_LOOKED_AT: Final = 500
"""Groups of alike calls whose sizes are computed, the most time first."""

_LARGE: Final = 10_000
"""Elements; smaller results say nothing."""

_BACKWARD: Final = 4.0
"""A remark needs a backward pass that takes at least this many times as long as the line's calls."""

_SHRINKS: Final = 8.0
"""A remark needs an intermediate tensor with at least this many times the elements of the result."""

_PASSES: Final = 5
"""Elementwise operators over one shape in each run of a line."""

_MANY: Final = 100
"""Calls in a step."""

_SHORT_US: Final = 20.0

_SLOW: Final = 4.0
"""A call is slow if the best call of its kind does at least this many times its operations per second."""

_LONG_NS: Final = 100_000
"""Shorter calls show nothing about rates."""


def shape_text(shape: Shape) -> str:
    """Return a shape as a program prints it.

    >>> shape_text((8, 64)), shape_text((8,))
    ('(8, 64)', '(8)')
    """
    return f"({', '.join(map(str, shape))})"


def operators_of(trace: Trace, line: ProgramLine, limit: int = _SHOWN) -> list[tuple[tuple[Shape, ...], Int32]]:
    """Return shapes and rows of the calls that take the most time, alike ones together.

    Calls of one operator that mostly differ in their shapes stand together, without shapes.
    """
    events, rows = trace.events, line.calls
    times = time_of_calls(trace)
    if not len(rows):
        return []
    texts = events.text_ids("Input Dims", rows)
    by_name, by_shape = Groups(events.name[rows]), Groups(events.name[rows], texts)
    spent = by_shape.sum(times[rows])
    differ = by_name.sum(times[rows])[by_name.which] > 2 * spent[by_shape.which]
    groups = Groups(events.name[rows], np.where(differ, -2, texts))
    spent = groups.sum(times[rows])
    found: list[tuple[tuple[Shape, ...], Int32]] = []
    for i in np.argsort(-spent, kind="stable")[:limit].tolist():
        if spent[i] and 10 * spent[i] >= spent.sum():
            first = int(groups.first[i])
            found.append((() if differ[first] else tuple(shapes(trace, int(rows[first]))), rows[groups.which == i]))
    return found


def time_of_calls(trace: Trace) -> Int64:
    """Return the time of each event: of the device's work launched in it where a device was used, else its own."""
    return trace.derived(device_time).total if trace.has_gpu else trace.events.dur


def bound_and_rate(trace: Trace, line: ProgramLine) -> tuple[str, float | None, float | None]:
    """Return what decides a line's time, and the GFLOP/s and GB/s of its operators whose sizes are known.

    Nothing on a busy machine: a short operator that waits for a processor moves no more for it.
    """
    events, needs = trace.events, _needs(trace, line)
    whole = int(events.dur[line.calls].sum()) + line.python.total
    if not whole or trace.has_gpu or trace.derived(waited_share) >= BUSY:
        return "", None, None
    short = trace.derived(short_operators)
    calling = int(trace.calls.self_time[short[trace.calls.within(short, line.calls)]].sum())
    if line.python.total > _MOSTLY * whole:
        return "python", None, None
    if calling + line.python.total > _MOSTLY * whole:
        return "overhead", None, None
    spent, heavy = events.dur[needs.rows], needs.work > 0
    computing, moving = int(spent[heavy].sum()), int(spent[~heavy].sum())
    if computing > _MOSTLY * whole:
        work, moved = float(needs.work.sum()), float(needs.moved[heavy].sum())
        return (
            ("arithmetic", work / computing, None) if work >= _INTENSE * moved else ("memory", None, moved / computing)
        )
    return ("memory", None, float(needs.moved[~heavy].sum()) / moving) if moving > _MOSTLY * whole else ("", None, None)


def remarks_on(trace: Trace, line: ProgramLine) -> tuple[str, ...]:
    """Return sentences on what is to see at a line, at most three."""
    found: list[str] = []
    for look in _REMARKS_ON:
        found += look(trace, line)
    return tuple(found[:_REMARKS])


def _inside(trace: Trace, calls: Int32) -> Int32:
    """Some calls and all operators inside of them."""
    rows = trace.events.rows(Kind.OPERATOR)
    found: Int32 = rows[trace.calls.within(rows, calls)]
    return found


@dataclass(frozen=True)
class _Needs:
    """What operators take whose sizes are known; one entry for each of `rows`, ascending.

    Attributes:
        rows: of heavy arithmetic, and of what runs at the speed of memory.
        work: arithmetic operations, 0 for the latter.
        moved: bytes.
        kind: of heavy arithmetic, such as "matmul".
    """

    rows: Int32
    work: Floats
    moved: Floats
    kind: npt.NDArray[np.str_]


def _all_needs(trace: Trace) -> _Needs:
    """Times of the window's operators; of two nested ones that compute the same, the outer one counts."""
    events, window = trace.events, trace.derived(steady_window)
    rows = events.of(HEAVY | MEMORY_SPEED)
    rows = rows[(events.kind[rows] == Kind.OPERATOR) & events.begin_in(rows, window.start, window.end)]
    heavy = events.are(HEAVY, rows)
    given = np.where(heavy, events.text_ids("Concrete Inputs", rows), -1)
    groups = Groups(events.name[rows], events.text_ids("Input Dims", rows), given)
    needed, kinds = np.zeros((2, len(groups))), np.full(len(groups), "", object)
    for i in np.argsort(-groups.sum(events.dur[rows]), kind="stable")[:_LOOKED_AT].tolist():
        first = int(rows[groups.first[i]])
        needed[:, i], kinds[i] = _needed(trace, first), kin(trace.name(first))
    work, moved, kind = (of_group[groups.which] for of_group in (*needed, kinds.astype(np.str_)))
    known = moved > 0
    counted = np.zeros(len(events), np.bool_)
    counted[rows[known]] = True
    around = np.append(trace.calls.nearest(counted), np.int32(-1))[trace.calls.parent[rows]]
    known &= around < 0
    return _Needs(rows[known], work[known], moved[known], kind[known])


def _needs(trace: Trace, line: ProgramLine) -> _Needs:
    """Those of the operators that a line calls."""
    every = trace.derived(_all_needs)
    mine = trace.calls.within(every.rows, line.calls)
    return _Needs(every.rows[mine], every.work[mine], every.moved[mine], every.kind[mine])


def _needed(trace: Trace, row: int) -> tuple[float, float]:
    name, taken, given = trace.name(row), shapes(trace, row), values(trace, row)
    output = convolution_output(trace, row) if CONVOLVING.names(name) else ()
    if found := flops_of(name, taken, output, values=given):
        typed = [WIDTH[dtype] for dtype in dtypes(trace, row) if dtype]
        return found[0], found[1] * (typed[0] if typed else 4)
    return 0.0, moved_by(name, tensors(trace, row), given)


def _python_runs(trace: Trace, line: ProgramLine) -> Iterator[str]:
    whole = line.when.total
    if not whole or line.python.total <= _MOSTLY * whole:
        return
    samples = trace.derived(stack_samples)
    inner = Counter(
        next((frame for frame in samples.stacks[i] if not TORCHWHYS.names(frame)), "")
        for i in samples.inside(line.python).tolist()
        if line_of(samples.own[i]) == line_of(line.line)
    )
    (frame, count), *_ = (*inner.most_common(1), ("", 0))
    part = percent(count / max(inner.total(), 1))
    below = (
        f", {part} of the samples in {short_frame(frame)}" if 2 * count > inner.total() and not code_of(frame) else ""
    )
    yield (
        f"For {percent(line.python.total / whole)} of its time no operator runs, but Python or other code that it "
        f"calls{below}."
    )


def _growth(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Inputs that become larger with time."""
    events, rows = trace.events, line.calls
    for name in np.unique(events.name[rows]).tolist():
        mine = rows[events.name[rows] == name]
        if 4 * events.dur[mine].sum() >= events.dur[rows].sum() and (grown := growth(trace, mine)):
            yield (
                f"The input of {events.texts[name]} grows all the time: {grown[0]:,} elements in the first recorded "
                f"call, {grown[1]:,} in the last."
            )
            return


def _times(count: float) -> str:
    return f"{count:,.0f} times" if abs(count - round(count)) < 0.05 else f"{count:,.1f} times"


def _readers(trace: Trace) -> dict[Shape, list[int]]:
    """Which operators of the forward pass, by place, take a tensor of each shape."""
    found: dict[Shape, list[int]] = {}
    program = trace.derived(forward_pass)
    for i, (taken, lists) in enumerate(zip(program.shapes, program.lists, strict=True)):
        for shape in {*taken, *(one for each in lists for one in each)}:
            found.setdefault(shape, []).append(i)
    return found


def _results_read(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Results of which little is read afterwards: slices, reductions, or nothing."""
    program, readers = trace.derived(forward_pass), trace.derived(_readers)
    places = np.flatnonzero(np.isin(program.rows, line.calls))
    for taken, rows in operators_of(trace, line):
        made = result_shape(trace, int(rows[0]))
        mine = places[np.isin(program.rows[places], rows)].tolist()
        if elements(made) < _LARGE or not mine or not taken:
            continue
        name, reading = trace.name(int(rows[0])), readers.get(made, [])
        readings = {_reading(trace, made, i, until, reading) for i, until in zip(mine, [*mine[1:], -1], strict=True)}
        if len(readings) == 1 and (sentence := readings.pop()):
            yield f"{name} makes {shape_text(made)}, {sentence}."
            return
        grown = elements(made) / max(sum(map(elements, taken)), 1)
        if grown >= 4:
            yield f"{name} makes {shape_text(made)}, {grown:,.0f} times as many elements as it reads."
            return
    yield from _unread(trace, line, places)


def _unread(trace: Trace, line: ProgramLine, places: np.ndarray) -> Iterator[str]:
    """A function, or a line, that makes its result again and again before any operator reads it."""
    program, readers = trace.derived(forward_pass), trace.derived(_readers)
    frames = trace.derived(own_frames)[program.rows] if trace.has_stacks else np.full(len(program.rows), -1)
    inner = np.isin(frames, np.unique(frames[places])) if trace.has_stacks else np.isin(np.arange(len(frames)), places)
    places = np.flatnonzero(inner)
    apart = (np.diff(places) > 1) | (np.diff(frames[places]) != 0)
    runs = np.split(places, np.flatnonzero(apart) + 1) if len(places) else []
    last = [int(run[-1]) for run in runs]
    made_by = {result_shape(trace, int(program.rows[i])) for i in last[:_SAMPLE]}
    if len(runs) < 3 or len(made_by) != 1 or elements(made := made_by.pop()) < _LARGE or len(line.backward):
        return
    outside = [reader for reader in readers.get(made, []) if not inner[reader]]
    read = any(i < reader < until for i, until in pairwise(last) for reader in outside)
    listed = any(made in one for lists in program.lists for one in lists)
    if not read and not listed:
        often = f"{len(last):,} times in a row"
        yield f"It makes a result of {shape_text(made)} {often}; no operator reads it in between."


def _reading(trace: Trace, made: Shape, place: int, again: int, readers: list[int]) -> str:
    """What becomes of a result made at a place until it is made again; "" where that isn't known or says nothing."""
    program = trace.derived(forward_pass)
    until = again if again >= 0 else len(program.rows)
    mine = readers[bisect_right(readers, place) : bisect_right(readers, until - 1)][:_SAMPLE]
    if not mine:
        return ""
    rows = program.rows[np.array(mine)]
    if trace.events.are(SLICE, rows).all():
        kept = sum(_kept(trace, int(row), made) for row in rows.tolist())
        return f"of which only slices are read: 1 element in {1 / kept:,.0f}" if 0 < kept <= 0.5 else ""
    names = sorted({trace.name(int(row)) for row in rows.tolist()})
    read = f"which only {enumeration(names)} {'read' if len(names) > 1 else 'reads'}"
    if trace.events.are(READS_ALL, rows).all():
        return read
    results = [result_shape(trace, int(row)) for row in rows.tolist()]
    largest = max(results, key=elements)
    if all(results) and elements(made) >= _SHRINKS * elements(largest):
        return f"{read}, to make {shape_text(largest)}: {elements(made) / elements(largest):,.0f} times fewer elements"
    return ""


def _kept(trace: Trace, row: int, shape: Shape) -> float:
    """The part of a tensor that a slice takes; 1 where that isn't known."""
    numbers = [int(text) if text.lstrip("-").isdigit() else None for text in values(trace, row)[1:]]
    if not numbers or numbers[0] is None:
        return 1.0
    length = shape[numbers[0] % len(shape)]
    if len(numbers) == 2:  # select
        return 1 / length
    if None in numbers[1:4]:
        return 1.0
    start, end, step = (*(number or 0 for number in numbers[1:4]), 1)[:3]
    taken = end if len(numbers) == 3 else len(range(*slice(start, min(end, length), step).indices(length)))  # narrow
    return taken / length


def _passes(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Many elementwise operators over tensors of one shape."""
    events, steps = trace.events, steady_steps(trace)
    rows = line.calls[events.are(ELEMENTWISE, line.calls)]
    if not steps or 2 * events.dur[rows].sum() < events.dur[line.calls].sum():
        return
    groups = Groups(events.text_ids("Input Dims", rows))
    largest = Counter[Shape]()
    for i, first in enumerate(groups.first.tolist()):
        taken = shapes(trace, int(rows[first]))
        largest[max(taken, key=elements, default=())] += int(groups.count[i])
    (shape, count), *_ = (*largest.most_common(1), ((), 0))
    runs = max(line.callers[0].calls if line.callers else 0, steps)
    if elements(shape) >= _LARGE and count >= _PASSES * runs:
        yield (
            f"{_times(count / steps).removesuffix(' times')} elementwise operators a step pass over tensors of "
            f"{shape_text(shape)}, each of which is read and written in full."
        )


def _many_calls(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Operators that are many and short."""
    events, steps = trace.events, steady_steps(trace)
    usual = float(np.median(events.dur[line.calls])) / 1000 if len(line.calls) else 0.0
    if steps and len(line.calls) >= _MANY * steps and usual < _SHORT_US:
        yield f"It makes {len(line.calls) / steps:,.0f} calls a step of {duration(usual)} each (median)."


def _not_trained(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Work in a program that trains, through which no gradient goes."""
    trains = len(trace.events.of(AUTOGRAD_NODE)) > 0
    if not trains or not len(line.calls) or trace.events.are(BACKWARD | UPDATE, line.calls).any():
        return
    program = trace.derived(forward_pass)
    if not np.isin(line.calls, program.rows).any():
        return
    if not len(line.backward) and not differentiated(trace, line.calls).any():
        if trace.events.are(RANDOM, _inside(trace, line.calls)).any():
            return
        yield (
            "The backward pass doesn't go through it: where its inputs are the same in every step, so is its result."
        )
        return
    inside = _inside(trace, line.backward)
    nodes = inside[trace.events.are(CONVOLUTION_BACKWARD, inside)]
    masks = {tuple(parse_list(given[-1].lower()))[:2] for row in nodes.tolist() if (given := values(trace, row))}
    if masks == {(True, False)}:
        yield "Its weight gets no gradient, but its input does."


def _inner(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """An operator that the program doesn't call itself and that takes most of the time, or a long backward pass."""
    events = trace.events
    called, backward = int(events.dur[line.calls].sum()), int(events.dur[line.backward].sum())
    behind = called > 0 and backward > _BACKWARD * called
    rows = _inside(trace, line.backward if behind else line.calls)
    own = trace.calls.self_time[rows]
    names, which = np.unique(events.name[rows], return_inverse=True)
    if not len(rows) or not own.sum():
        return
    spent = np.bincount(which.reshape(-1), own.astype(np.float64))
    best, part = int(names[spent.argmax()]), float(spent.max() / own.sum())
    name = events.texts[best]
    if behind:
        most = f", {percent(part)} of it in {name}" if part > _MOSTLY else ""
        yield f"Its backward pass takes {backward / called:,.0f} times as long as its calls{most}."
    elif part > _MOSTLY and best not in events.name[line.calls] and not HEAVY.names(name):
        yield f"Within what it calls {name} takes {percent(part)}."


def _wide(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Types of double width."""
    looked_at = line.calls[:_SAMPLE].tolist()
    types = Counter(text for row in looked_at for text in set(dtypes(trace, row)) if text)
    for wide in ("float64", "complex128", "complex64"):
        if types[wide] > len(looked_at) / 2:
            yield f"It computes in {wide}."


def _slower_than_others(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """A rate far below that of the best calls of the same kind in the trace."""
    if trace.derived(waited_share) >= BUSY:  # some calls wait for a processor, others don't
        return
    mine, every = _needs(trace, line), trace.derived(_all_needs)
    spent, all_spent = trace.events.dur[mine.rows], trace.events.dur[every.rows]
    for kind in np.unique(mine.kind[mine.work > 0]).tolist():
        here = (mine.work > 0) & (spent >= _LONG_NS) & (mine.kind == kind)
        there = (every.work > 0) & (all_spent >= _LONG_NS) & (every.kind == kind)
        if 2 * spent[here].sum() > trace.events.dur[line.calls].sum() > 0:
            own, best = float(mine.work[here].sum() / spent[here].sum()), float((every.work / all_spent)[there].max())
            if _SLOW * own < best:
                yield (
                    f"Its {kind} reaches {digits(own)} GFLOP/s; the fastest call of its kind in this recording "
                    f"{digits(best)}."
                )


def _same_elsewhere(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Factorisations, sorts and similar operators of one shape that several calls of a step make."""
    events, tree, meaning, steps = trace.events, trace.calls, FACTORISATION | SCANNING, steady_steps(trace)
    rows = _inside(trace, line.calls)
    rows = rows[events.are(meaning, rows)]
    inside = np.zeros(len(events), np.int64)
    inside[rows] = 1
    rows = rows[tree.sums(inside)[rows] == 1]  # the innermost ones: solve and logdet both factorise
    every = events.of(meaning)
    every = every[trace.in_steps(every)]
    for row in rows[np.argsort(-events.dur[rows], kind="stable")][:1].tolist() if steps else ():
        first = shapes(trace, row)[:1]
        alike = every[events.name[every] == events.name[row]]
        alike = alike[[shapes(trace, one)[:1] == first for one in alike.tolist()]]
        count, outside = len(alike) / len(trace.steps_found), ~tree.within(alike, line.calls)
        if first and count > 1 and outside.any():
            yield (
                f"{trace.name(row)} of {shape_text(first[0])} runs {_times(count)} a step, at this line and elsewhere: "
                "of the same tensor once is enough."
            )


_REMARKS_ON: Final[tuple[Callable[[Trace, ProgramLine], Iterator[str]], ...]] = (
    _python_runs,
    _growth,
    _results_read,
    _same_elsewhere,
    _many_calls,
    _passes,
    _slower_than_others,
    _inner,
    _not_trained,
    _wide,
)
