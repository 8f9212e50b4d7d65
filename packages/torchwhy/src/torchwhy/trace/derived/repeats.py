"""Results that the program computes again from inputs that it has had before, as `torchwhy profile` saw them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from torchwhy.trace.derived.contents import (
    Operator,
    Site,
    calls_of,
    contents,
    operator_of,
    operator_rows,
    stripped,
)
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.frames import LAUNCHER, MODULE_CALL, TORCHWHYS, own_place, without_numbers
from torchwhy.trace.meaning.operators import TRUTH_OF_ALL
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchwhy.trace.model.trace import Trace

__all__ = ["Repeated", "Repetition", "repeated_calls", "repetitions"]

LEAST: Final = 3
"""At least this number of calls must be repeated."""

MOSTLY: Final = 0.75
"""This part of the calls from the first repetition on, at least, has to be repeated: inputs change between requests."""

BETWEEN_NS: Final = 200_000
"""Longer code between two operators may do something else than call them."""

SAMPLED: Final = 10
"""Samples that a stack needs: with fewer, the time that they stand for is a guess."""

NEARLY_ALL: Final = 0.9
"""A program without backward passes that repeats at least this share runs on one input, as in a benchmark."""


class Repetition(NamedTuple):
    """A line of the program that computes something again.

    Attributes:
        stack: from that line outwards.
        function: the name of the line's function, if none of its operators does anything else; "" otherwise.
        called: the frame that it calls and all of whose operators are repeated; else the name of the operator.
        source: of the line.
        calls: how often its longest operator was repeated.
        in_turn: whether several inputs come back in turn; else they change rarely or never.
        time_us: how long the repetitions of all its operators took under the watch.
        earlier: the line that has computed the same in the same step; "" where it is another step.
        in_module: whether a module computes it.
        parts: of the calls of each operator, the part that is repeated here: 0 to 1.
        inside: stacks, from the outermost frame that calls nothing but repeated operators outwards, and the part of its
            calls that is repeated: 0 to 1.
    """

    stack: tuple[str, ...]
    function: str
    called: str
    source: str
    calls: int
    in_turn: bool
    time_us: float
    earlier: str
    in_module: bool
    parts: dict[Operator, float]
    inside: dict[tuple[str, ...], float]


class _Place(NamedTuple):
    """A repeated site; `inside` as a key of `Repetition.inside`, the others as there."""

    site: Site
    called: str
    earlier: str
    in_module: bool
    inside: tuple[str, ...]


class Repeated(NamedTuple):
    """The recorded calls of repeated operators.

    Attributes:
        rows: the operators' events.
        when: their time, with the operators that call them and the Python code from one to the next, or all of the
            code around them where samples show it.
        time_us: the part of it that is repeated.
    """

    rows: Int32
    when: Intervals
    time_us: float


def repetitions(trace: Trace) -> tuple[Repetition, ...]:
    """Return the lines with repetitions, those with the most time first; () where nothing was watched."""
    noted = trace.derived(contents)
    # Masks of different tensors are equal, too: none of their values is true.
    telling = [site for site in noted.sites if not TRUTH_OF_ALL.names(site.operator)]
    named = [(site, noted.stack_of(site)) for site in telling]
    earlier = [noted.stacks[site.earlier] if site.earlier >= 0 else () for site in telling]
    judged = [site for site, stack in named if stack and site.judged]
    repeated = sum(map(_is_repeated, judged))
    trains = any(not stack for _, stack in named)
    if not repeated or (not trains and repeated >= NEARLY_ALL * len(judged)):
        return ()
    calls: dict[Operator, int] = defaultdict(int)
    for site in noted.sites:
        for shapes, count, _ in site.shapes:
            calls[site.operator, stripped(shapes)] += max(count, 0)
    lines: dict[tuple[str, ...], list[_Place]] = defaultdict(list)
    for site, stack, first, depth in _whole(named, earlier):
        own = own_place(stack[depth:])
        if own:
            line = stack.index(own, depth)
            called = stack[line - 1] if line else site.operator
            in_module = any(MODULE_CALL.names(frame) for frame in stack[:line])
            lines[stack[line:]].append(_Place(site, called, own_place(first), in_module, stack[depth:]))
    mixed = {
        without_numbers(frame) for site, stack in named if site.judged and not _is_repeated(site) for frame in stack
    }
    found = []
    for stack, sites in lines.items():
        name = stack[0].rpartition(": ")[2]
        function = name if name.isidentifier() and without_numbers(stack[0]) not in mixed else ""
        found.append(_repetition(stack, function, sites, noted.source.get(stack[0], ""), calls))
    return tuple(sorted(found, key=lambda one: -one.time_us))


def _is_repeated(site: Site) -> bool:
    return LEAST <= site.again <= site.judged and site.again >= MOSTLY * site.judged


def _whole(
    named: Sequence[tuple[Site, tuple[str, ...]]], earlier: Sequence[tuple[str, ...]]
) -> Iterator[tuple[Site, tuple[str, ...], tuple[str, ...], int]]:
    """Each repeated site with its stack, the earlier call's stack, and a depth.

    The frame at that depth is the outermost one that calls nothing but repeated operators; 0 without one.
    """
    others: set[tuple[str, ...]] = set()  # stacks, from a frame outwards, of what isn't repeated
    for site, stack in named:
        if site.judged and not _is_repeated(site):
            others.update(stack[depth:] for depth in range(len(stack)))
    for (site, stack), first in zip(named, earlier, strict=True):
        if stack and _is_repeated(site):
            whole = sum(stack[depth:] not in others for depth in range(len(stack)))
            yield site, stack, first, max(whole - 1, 0)


def _repetition(
    stack: tuple[str, ...],
    function: str,
    sites: Sequence[_Place],
    source: str,
    calls: dict[Operator, int],
) -> Repetition:
    longest, called, earlier, _, _ = max(sites, key=lambda one: one.site.time_us)
    parts: dict[Operator, float] = defaultdict(float)
    inside: dict[tuple[str, ...], float] = {}
    for site, _, _, _, stack_inside in sites:
        again = site.again / site.judged
        inside[stack_inside] = min(inside.get(stack_inside, 1.0), again)
        for shapes, count, _ in site.shapes:
            operator = site.operator, stripped(shapes)
            parts[operator] += again * max(count, 0) / max(calls[operator], 1)
    return Repetition(
        stack,
        function,
        called,
        source,
        longest.again,
        2 * longest.in_a_row < longest.again,
        sum(one.site.time_us for one in sites),
        earlier if earlier != stack[0] else "",
        any(one.in_module for one in sites),
        dict(parts),
        inside,
    )


def repeated_calls(
    trace: Trace, parts: Mapping[Operator, float], inside: Mapping[tuple[str, ...], float] | None = None
) -> Repeated:
    """Find the recorded calls of repeated operators.

    An operator that calls nothing else that computes counts as a whole, such as `aten::linear` around `aten::addmm`. So
    does the Python code between two of them that follow each other in the order in which the watch saw them, with
    nothing but views between, if it takes `BETWEEN_NS` at most: it is the modules' and functions' that call them. Of a
    stack that calls nothing else, the time counts in which samples show it, if `SAMPLED` or more do and it is longer.

    Args:
        trace: whose calls.
        parts: of each operator the part of its calls that is repeated, 0 to 1.
        inside: as in `Repetition`.
    """
    events, window = trace.events, trace.derived(steady_window)
    rows, when, least_us = calls_of(trace, parts)
    outer = trace.derived(outer_operators)
    outer = outer[events.lane[outer] == trace.main_lane]
    if not len(rows) or not len(outer):
        return Repeated(rows, when, least_us)
    sites = trace.derived(contents).sites
    computing = operator_rows(trace, {site.operator for site in sites})
    others = computing[events.covered(computing, events.times_of(rows)) < events.dur[computing]]
    computes, mixed = np.zeros((2, len(outer)), np.bool_)
    computes[_around(trace, outer, computing)] = True
    mixed[_around(trace, outer, others)] = True
    called: dict[int, list[Operator]] = defaultdict(list)
    pieces: list[tuple[int, int, float]] = []  # begin, end, and the part that is repeated
    for row, i in zip(rows.tolist(), _around(trace, outer, rows).tolist(), strict=True):
        operator = operator_of(trace, row)
        called[i].append(operator)
        pieces.append((int(events.ts[row]), int(events.end[row]), parts[operator]))
    whole = [i for i in sorted(called) if not mixed[i]]
    part = {i: min(parts[one] for one in called[i]) for i in whole}
    pieces += [(int(events.ts[outer[i]]), int(events.end[outer[i]]), part[i]) for i in whole]
    order: dict[Operator, int] = {}
    for site in sites:
        for shapes, _, _ in site.shapes:
            order.setdefault((site.operator, stripped(shapes)), len(order))
    step = trace.step_of(outer)
    for i, k in itertools.pairwise(whole):
        begin, end = int(events.end[outer[i]]), int(events.ts[outer[k]])
        follows = order.get(called[i][-1], 0) < order.get(called[k][0], 0) and not computes[i + 1 : k].any()
        if follows and end - begin <= BETWEEN_NS and step[i] == step[k]:
            pieces.append((begin, end, min(part[i], part[k])))
    when, time_ns = Intervals.union([], []), 0.0
    for one in sorted({one for _, _, one in pieces}, reverse=True):
        begins, ends = zip(*((begin, end) for begin, end, mine in pieces if mine == one), strict=True)
        more = Intervals.union(begins, ends).clip(window.start, window.end) - when
        when, time_ns = when | more, time_ns + one * more.total
    sampled_ns = 0.0
    for stretches, again in _sampled(trace, inside or {}):
        when, sampled_ns = when | stretches, sampled_ns + again * stretches.total
    return Repeated(rows, when, max(time_ns, sampled_ns) / 1000)


def _sampled(trace: Trace, inside: Mapping[tuple[str, ...], float]) -> Iterator[tuple[Intervals, float]]:
    """When samples show stacks in the steady window, and the part of each that is repeated."""
    samples, window = trace.derived(stack_samples), trace.derived(steady_window)
    stacks = list(map(_without_recorder, samples.stacks))
    for stack, again in inside.items():
        shows = np.array([one[-len(stack) :] == stack for one in stacks], np.bool_)
        if len(stacks) and np.count_nonzero(shows[samples.which]) >= SAMPLED:
            yield samples.when(shows).clip(window.start, window.end), again


def _without_recorder(stack: tuple[str, ...]) -> tuple[str, ...]:
    """The frames of a sample that a watch notes, too."""
    place = next((i for i, frame in enumerate(stack) if LAUNCHER in frame), len(stack))
    return tuple(frame for frame in stack[:place] if not TORCHWHYS.names(frame))


def _around(trace: Trace, outer: Int32, rows: Int32) -> Int64:
    """The places of the outermost operators around some rows."""
    found: Int64 = np.searchsorted(trace.events.ts[outer], trace.events.ts[rows], "right") - 1
    return found
