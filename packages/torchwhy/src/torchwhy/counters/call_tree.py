"""A recorded tree of calls as single facts, each with its time: what `count` would have counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from torchwhy.counters.composite_operators import is_recipe
from torchwhy.counters.operators import is_native
from torchwhy.counters.recording import is_launch, is_operator
from torchwhy.trace.meaning.compiler import COMPILING
from torchwhy.trace.meaning.copies import WAYS, read_copy
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, DISPATCHED_COPY, FROM_PYTHON, SEEN_AS
from torchwhy.trace.meaning.runtime import ANY_CALL, WAIT_FOR_DEVICE

__all__ = ["Fact", "facts_in"]

_KINDS = tuple("DtoD" if way == "PtoP" else way for way in WAYS)  # another device's memory is a device's
_NO_LINE = "(line not recorded; stacks show it)"
*_MAKING, _DETACH = FROM_PYTHON
_LIFT = _MAKING[-1]


class Fact(NamedTuple):
    """Something that happened: which metric it adds to, under which key, how much, and when (nanoseconds)."""

    metric: str
    key: str | tuple[str, str]
    amount: int
    time_ns: int


class _Place(NamedTuple):
    """Where in the tree a call stands.

    Args:
        operator: the counted operator it is part of, if any. hidden: it belongs to compiling.
        called: an operator, autograd or the compiler called it, not Python. line: the program's own frame.
    """

    operator: str = ""
    hidden: bool = False
    called: bool = False
    line: str = _NO_LINE


def facts_in(roots: Iterable[Any]) -> Iterator[Fact]:
    """Yield all facts of a tree, in program order within each thread."""
    pending = list(_placed(list(roots), _Place()))[::-1]
    while pending:  # a list, not recursion: call trees may be deeper than Python's stack
        call, place = pending.pop()
        children = list(call.children)
        inside = place
        if call.tag.name == "TorchOp":
            inside = _inside(call, place, children)
            yield from _facts_of_operator(call, place, inside)
        elif call.tag.name == "PyCall":
            inside = place._replace(line=own_frame([call.name, place.line]) or place.line)
        else:
            yield from _facts_of_event(call, place)
        pending.extend(list(_placed(children, inside))[::-1])


def _inside(call: Any, place: _Place, children: list[Any]) -> _Place:
    """Return the place of what a call called."""
    if place.operator or place.hidden:
        return place._replace(called=True)
    if not is_operator(call):
        hidden = COMPILING.names(call.name)
        return place._replace(hidden=hidden, called=place.called or hidden or _is_autograd(call.name))
    recipe = is_recipe(call.name, getattr(call, "overload_name", ""), _names_called(children))
    return place._replace(operator="" if recipe else call.name, called=True)


@lru_cache(maxsize=4096)  # used for each call
def _is_autograd(name: str) -> bool:
    return AUTOGRAD_NODE.names(name)


def _names_called(children: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the operators that a call called, through Python frames too."""
    pending = list(children)
    while pending:
        call = pending.pop()
        if call.tag.name == "TorchOp":
            yield call.name
        else:
            pending.extend(call.children)


def _facts_of_operator(call: Any, place: _Place, inside: _Place) -> Iterator[Fact]:
    at = call.start_time_ns
    if _is_autograd(call.name):
        yield Fact("backward", "", 1, at)
    if not place.called and is_operator(call):
        yield Fact("dispatches", "", 1, at)
    if inside.operator and not place.operator:
        name = SEEN_AS.get(call.name, call.name)
        yield Fact("operators", name, 1, at)
        yield from _line_of(name, place, at)
        if is_native(call.name.partition("::")[0]):
            yield Fact("native_calls", call.name, 1, at)
        if DISPATCHED_COPY.names(call.name) and not _reaches_device(call):
            yield Fact("copies", "HtoH", 1, at)
            yield from _line_of("HtoH", place, at)


def _facts_of_event(call: Any, place: _Place) -> Iterator[Fact]:
    at = call.start_time_ns
    if call.tag.name == "Allocation":
        if call.extra_fields.alloc_size > 0:
            yield Fact("allocations", "", 1, at)
            yield Fact("allocated_bytes", "", call.extra_fields.alloc_size, at)
    elif call.tag.name == "Kineto":
        if is_launch(call.name):
            yield Fact("kernel_launches", "", 1, at)
        elif ANY_CALL.names(call.name) and WAIT_FOR_DEVICE.names(call.name):
            yield Fact("syncs", (place.operator or call.name, place.line), 1, at)
        elif way := _KINDS[read_copy(call.name)[0]]:
            # It may run long after the step that requested it.
            asked = call.parent.start_time_ns if call.parent is not None else at
            yield Fact("copies", way, 1, asked)
            yield from _line_of(way, place, asked)


def _line_of(key: str, place: _Place, at: int) -> Iterator[Fact]:
    if place.line != _NO_LINE:
        yield Fact("lines", (key, place.line), 1, at)


def _reaches_device(call: Any) -> bool:
    pending = [call]
    while pending:
        call = pending.pop()
        if call.tag.name == "Kineto":
            return True
        pending.extend(call.children)
    return False


def _placed(calls: list[Any], place: _Place) -> Iterator[tuple[Any, _Place]]:
    """Yield calls that stand in one place; those that `torch.tensor` makes out of sight are part of lift_fresh."""
    names = [call.name for call in calls]
    if _LIFT not in names:
        yield from ((call, place) for call in calls)
        return
    inside = place if place.operator else place._replace(operator=_LIFT)
    for position, call in enumerate(calls):
        makes = any(names[position - back : position - back + 3] == _MAKING for back in (0, 1) if back <= position)
        ends = position >= 3 and call.name == _DETACH and names[position - 3 : position] == _MAKING
        yield call, inside if makes or ends else place
