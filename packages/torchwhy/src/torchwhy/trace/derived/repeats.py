"""Results that the program computes again from inputs that it has had before, as `torchwhy profile` saw them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from torchwhy.trace.meaning.frames import MODULE_CALL, own_place, without_numbers
from torchwhy.trace.model.events import parse_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchwhy.trace.model.trace import Trace

__all__ = ["Operator", "Repetition", "repetitions", "stripped"]

_NOTED: Final = "torchwhy_repeats"

LEAST: Final = 3
"""At least this number of calls must be repeated."""

MOSTLY: Final = 0.75
"""This part of the calls from the first repetition on, at least, has to be repeated: inputs change between requests."""

NEARLY_ALL: Final = 0.9
"""A program without backward passes that repeats at least this share runs on one input, as in a benchmark."""

Operator = tuple[str, str]
"""An operator's name, and the shapes of its inputs as `stripped` returns them."""


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


class _Site(msgspec.Struct):
    """As `torchwhy.capture.repeats.Site` is written."""

    operator: str
    stack: int
    judged: int
    again: int
    time_us: float
    values: int
    in_a_row: int
    earlier: int
    shapes: list[tuple[str, int, int]]

    @property
    def is_repeated(self) -> bool:
        return LEAST <= self.again <= self.judged and self.again >= MOSTLY * self.judged


class _Noted(msgspec.Struct):
    """As `torchwhy.capture.repeats.Repeats` is written."""

    frames: list[str]
    lines: list[str]
    stacks: list[list[int]]
    sites: list[_Site]


def stripped(shapes: str | None) -> str:
    """Return the shapes of an operator's inputs without what follows the last tensor.

    >>> stripped("[[3, 4], [4], [], []]")
    '[[3, 4], [4]]'
    """
    values = parse_list(shapes)
    while values and not values[-1]:
        values = values[:-1]
    return repr(values)


def repetitions(trace: Trace) -> tuple[Repetition, ...]:
    """Return the lines with repetitions, those with the most time first; () where nothing was watched."""
    try:
        noted = msgspec.convert(trace.info.top.get(_NOTED), _Noted)
        stacks = [tuple(noted.frames[place] for place in stack) for stack in noted.stacks]
        source = dict(zip(noted.frames, noted.lines, strict=True))
        named = [(site, stacks[site.stack] if site.stack >= 0 else ()) for site in noted.sites]
        earlier = [stacks[site.earlier] if site.earlier >= 0 else () for site in noted.sites]
    except (msgspec.ValidationError, IndexError, ValueError):
        return ()
    judged = [site for site, stack in named if stack and site.judged]
    repeated = sum(site.is_repeated for site in judged)
    trains = any(not stack for _, stack in named)
    if not repeated or (not trains and repeated >= NEARLY_ALL * len(judged)):
        return ()
    calls: dict[Operator, int] = defaultdict(int)
    for site in noted.sites:
        for shapes, count, _ in site.shapes:
            calls[site.operator, stripped(shapes)] += max(count, 0)
    lines: dict[tuple[str, ...], list[tuple[_Site, str, str, bool]]] = defaultdict(list)
    for site, stack, first, depth in _whole(named, earlier):
        own = own_place(stack[depth:])
        if own:
            line = stack.index(own, depth)
            called = stack[line - 1] if line else site.operator
            in_module = any(MODULE_CALL.names(frame) for frame in stack[:line])
            lines[stack[line:]].append((site, called, own_place(first), in_module))
    mixed = {without_numbers(frame) for site, stack in named if site.judged and not site.is_repeated for frame in stack}
    found = []
    for stack, sites in lines.items():
        name = stack[0].rpartition(": ")[2]
        function = name if name.isidentifier() and without_numbers(stack[0]) not in mixed else ""
        found.append(_repetition(stack, function, sites, source.get(stack[0], ""), calls))
    return tuple(sorted(found, key=lambda one: -one.time_us))


def _whole(
    named: Sequence[tuple[_Site, tuple[str, ...]]], earlier: Sequence[tuple[str, ...]]
) -> Iterator[tuple[_Site, tuple[str, ...], tuple[str, ...], int]]:
    """Each repeated site with its stack, the earlier call's stack, and a depth.

    The frame at that depth is the outermost one that calls nothing but repeated operators; 0 without one.
    """
    others: set[tuple[str, ...]] = set()  # stacks, from a frame outwards, of what isn't repeated
    for site, stack in named:
        if site.judged and not site.is_repeated:
            others.update(stack[depth:] for depth in range(len(stack)))
    for (site, stack), first in zip(named, earlier, strict=True):
        if stack and site.is_repeated:
            whole = sum(stack[depth:] not in others for depth in range(len(stack)))
            yield site, stack, first, max(whole - 1, 0)


def _repetition(
    stack: tuple[str, ...],
    function: str,
    sites: Sequence[tuple[_Site, str, str, bool]],
    source: str,
    calls: dict[Operator, int],
) -> Repetition:
    longest, called, earlier, _ = max(sites, key=lambda one: one[0].time_us)
    parts: dict[Operator, float] = defaultdict(float)
    for site, _, _, _ in sites:
        for shapes, count, _ in site.shapes:
            operator = site.operator, stripped(shapes)
            parts[operator] += site.again / site.judged * max(count, 0) / max(calls[operator], 1)
    return Repetition(
        stack,
        function,
        called,
        source,
        longest.again,
        2 * longest.in_a_row < longest.again,
        sum(site.time_us for site, _, _, _ in sites),
        earlier if earlier != stack[0] else "",
        any(in_module for _, _, _, in_module in sites),
        dict(parts),
    )
