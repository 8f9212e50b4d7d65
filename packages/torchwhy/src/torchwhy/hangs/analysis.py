"""Why a job hangs: the calls of its ranks are compared, group by group, at the first that is not over everywhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from torchwhy.hangs.dumps import Call, Dumps

__all__ = ["Hang", "Kind", "Side", "find_hangs"]

Kind = Literal["type", "order", "size", "dtype", "missing-call", "missing-dump", "peer", "not-finished"]

_ROOT_ONLY: Final = ("scatter", "gather", "broadcast", "_broadcast_oop", "reduce", "_reduce_oop")
_UNEVEN: Final = ("all_to_all", "all_gather_v", "reduce_scatter_v")
"""Beginnings of the names of collectives to which ranks may bring tensors of different sizes."""

_CAUSES: Final[dict[Kind, int]] = {
    "order": 0, "type": 0, "size": 0, "dtype": 0, "peer": 1, "missing-dump": 2, "missing-call": 3, "not-finished": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Side:
    """Ranks that did the same.

    Attributes:
        ranks: of the job, ascending.
        call: what they called; None for those that did not call.
        elsewhere: of ranks that did not call, where they wait instead: their first call that is not over, in any group;
            of ranks whose call has not begun on the device, the one before it that is not over. None where all are.
        last: the last thing they called in the group; None where nothing of it is kept.
    """

    ranks: tuple[int, ...]
    call: Call | None = None
    elsewhere: Call | None = None
    last: Call | None = None


@dataclass(frozen=True)
class Hang:
    """One collective, or one send or recv, that some rank waits in.

    Attributes:
        kind: what is wrong.
        group: name and description of the process group.
        members: its ranks; those with calls of it where no dump says.
        number: of the call among those of the group.
        sides: who did what, the most ranks first.
        missing: ranks without a dump.
        follows: whether every rank that is missed waits in another hang, which is the cause then.
        circle: whether ranks that are missed wait, through other hangs, for a rank that waits here.
    """

    kind: Kind
    group: tuple[str, str]
    members: tuple[int, ...]
    number: int
    sides: tuple[Side, ...]
    missing: tuple[int, ...] = ()
    follows: bool = False
    circle: bool = False


def find_hangs(dumps: Dumps) -> tuple[Hang, ...]:
    """Return what ranks wait for, the causes first, then what follows from them."""
    found = []
    for group, members in _groups(dumps).items():
        found += _of_collectives(dumps, group, members)
        found += _of_peers(dumps, group, members)
    found = _told_apart(found)
    return tuple(sorted(found, key=lambda one: (one.follows, _CAUSES[one.kind], -sum(len(s.ranks) for s in one.sides))))


def _groups(dumps: Dumps) -> dict[tuple[str, str, tuple[int, ...]], tuple[int, ...]]:
    """The process groups by name, description and members; the members may be known by who called only."""
    known: dict[tuple[str, str], set[tuple[int, ...]]] = defaultdict(set)
    callers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for rank, dump in dumps.ranks.items():
        for group, members in dump.members.items():
            if members:
                known[group].add(members)
        for group in {call.group for call in dump.calls}:
            callers[group].add(rank)
    found = {}
    for group, ranks in callers.items():
        sets = known.get(group) or {tuple(sorted(ranks))}
        for members in sorted(sets):  # groups of other ranks may have the same name
            if ranks & {*members}:
                found[(*group, members)] = members
    return found


def _of_collectives(dumps: Dumps, group: tuple[str, str, tuple[int, ...]], members: tuple[int, ...]) -> list[Hang]:
    name, there = group[:2], [rank for rank in members if rank in dumps.ranks]
    calls = {rank: _by_number(dumps.ranks[rank].calls, name) for rank in there}
    waiting = {number for each in calls.values() for number, some in each.items() if any(not c.done for c in some)}
    if not waiting:
        return []
    number = min(waiting)
    missing = tuple(rank for rank in members if rank not in dumps.ranks)
    same: dict[tuple[object, ...], list[int]] = defaultdict(list)
    absent: list[int] = []
    for rank, each in calls.items():
        if number in each:
            same[_signature(each[number], len(members))].append(rank)
        elif not each or max(each) < number:
            absent.append(rank)
    alike = sorted(same.items(), key=lambda item: -len(item[1]))
    place = _first_difference([signature for signature, _ in alike])
    sides = [Side(tuple(ranks), calls[ranks[0]][number][min(place, len(signature) - 1)]) for signature, ranks in alike]
    kind = _mismatch([s.call for s in sides if s.call is not None], calls, number) if len(sides) > 1 else None
    if kind is None and len(sides) > 1:
        sides = [Side(tuple(sorted(rank for side in sides for rank in side.ranks)), sides[0].call)]
    if absent:
        sides += _absent(dumps, name, absent)
    if kind is None:
        kind = "missing-call" if absent else "missing-dump" if missing else "not-finished"
    if kind == "not-finished":
        sides = _by_state(dumps, calls, number)
    return [Hang(kind, name, members, number, tuple(sides), missing)]


def _by_number(calls: Iterable[Call], group: tuple[str, str]) -> dict[int, list[Call]]:
    """The collectives of a group by number; those of one coalesced call share it."""
    found: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        if call.group == group and call.peer is None:
            found[call.number].append(call)
    return found


def _signature(calls: list[Call], ranks: int) -> tuple[object, ...]:
    """What all ranks must agree on."""
    found = []
    for call in calls:
        sizes: tuple[str, ...] = (call.input_sizes, call.output_sizes)
        if call.name.startswith(_UNEVEN) or (call.name == "all_gather" and ranks > 1):
            sizes = ()
        elif call.name in ("scatter",):
            sizes = (call.output_sizes,)
        elif call.name in ("gather",):
            sizes = (call.input_sizes,)
        types = () if call.name in _ROOT_ONLY and not call.types else (call.types,)
        found.append((call.name, sizes, types))
    return tuple(found)


def _mismatch(sides: list[Call], calls: dict[int, dict[int, list[Call]]], number: int) -> Kind | None:
    """In what the calls of one number differ."""
    names = {call.name for call in sides}
    if len(names) > 1:
        return "order" if _swapped(sides, calls, number) else "type"
    if len({(call.input_sizes, call.output_sizes) for call in sides}) > 1:
        return "size"
    return "dtype" if len({call.types for call in sides}) > 1 else None


def _first_difference(signatures: list[tuple[object, ...]]) -> int:
    """The place of the first call, of those that share a number, in which ranks differ; 0 where they don't."""
    shortest = min(map(len, signatures))
    return next(
        (i for i in range(shortest) if len({one[i] for one in signatures}) > 1), shortest if len(signatures) > 1 else 0
    )


def _swapped(sides: list[Call], calls: dict[int, dict[int, list[Call]]], number: int) -> bool:
    """Whether ranks call the same in another order: what one side calls now, the other calls next."""
    later: dict[str, set[str]] = defaultdict(set)
    for each in calls.values():
        if number in each:
            later[each[number][0].name].update(call.name for call in each.get(number + 1, ()))
    names = {call.name for call in sides}
    return any(other in later[name] and name in later[other] for name in names for other in names - {name})


def _absent(dumps: Dumps, group: tuple[str, str], ranks: Iterable[int]) -> list[Side]:
    """Ranks that did not call, by where they are instead."""
    found: dict[tuple[object, ...], list[int]] = defaultdict(list)
    where: dict[tuple[object, ...], tuple[Call | None, Call | None]] = {}
    for rank in ranks:
        dump = dumps.ranks[rank]
        elsewhere = next((call for call in dump.calls if not call.done), None)
        last = next((call for call in reversed(dump.calls) if call.group == group and call.peer is None), None)
        key = tuple((c.group, c.number, c.name, c.line) if c is not None else None for c in (elsewhere, last))
        found[key].append(rank)
        where[key] = elsewhere, last
    sides = [Side(tuple(members), None, *where[key]) for key, members in found.items()]
    return sorted(sides, key=lambda side: -len(side.ranks))


def _by_state(dumps: Dumps, calls: dict[int, dict[int, list[Call]]], number: int) -> list[Side]:
    """All called the same: who has finished, started, or not begun."""
    found: dict[tuple[object, ...], list[int]] = defaultdict(list)
    shown: dict[tuple[object, ...], tuple[Call, Call | None]] = {}
    for rank, each in calls.items():
        if number in each:
            call = next((one for one in each[number] if not one.done), each[number][0])
            before = _before(dumps.ranks[rank].calls, call)
            key = (call.state, call.done, _key(before) if before is not None else None)
            found[key].append(rank)
            shown.setdefault(key, (call, before))
    sides = (Side(tuple(ranks), *shown[key]) for key, ranks in found.items())
    return sorted(sides, key=lambda side: -len(side.ranks))


def _before(calls: Iterable[Call], call: Call) -> Call | None:
    """The first call, in another group or of another kind, that a rank made before one that has not begun."""
    if call.state != "scheduled" or not call.seen_on_device:
        return None
    first = next((one for one in calls if not one.done), call)
    return first if (first.group, first.peer) != (call.group, call.peer) else None


def _of_peers(dumps: Dumps, group: tuple[str, str, tuple[int, ...]], members: tuple[int, ...]) -> list[Hang]:
    """Sends and recvs of a group that are not over, by pairs of ranks."""
    name = group[:2]
    posted: dict[tuple[int, int], dict[str, list[Call]]] = defaultdict(lambda: {"send": [], "recv": []})
    for rank in members:
        dump = dumps.ranks.get(rank)
        for call in dump.calls if dump is not None else ():
            known = call.peer is not None and all(0 <= one < len(members) for one in call.peer)
            if call.group == name and not call.done and call.peer is not None and known:
                source, target = (members[one] for one in call.peer)
                if rank == (source if call.name == "send" else target):
                    posted[source, target][call.name].append(call)
    pairs = {(min(way), max(way)) for way in posted}
    return [_of_pair(dumps, name, pair, posted) for pair in sorted(pairs)]


def _of_pair(
    dumps: Dumps, name: tuple[str, str], pair: tuple[int, int], posted: dict[tuple[int, int], dict[str, list[Call]]]
) -> Hang:
    """What two ranks have posted to each other: a send is answered by the recv of the same place, in each direction."""
    unanswered: dict[int, Call] = {}
    first: tuple[Side, ...] = ()
    for source, target in (pair, pair[::-1]):
        sends, recvs = posted[source, target]["send"], posted[source, target]["recv"]
        for sent, received in zip(sends, recvs, strict=False):
            sides = (Side((source,), sent), Side((target,), received))
            if sent.input_sizes != received.output_sizes or sent.types != received.types:
                kind: Kind = "size" if sent.input_sizes != received.output_sizes else "dtype"
                return Hang(kind, name, pair, sent.number, sides)
            first = first or sides
        if len(sends) != len(recvs):
            rank, more = (source, sends[len(recvs)]) if len(sends) > len(recvs) else (target, recvs[len(sends)])
            unanswered.setdefault(rank, more)
    if not unanswered:
        assert first[0].call is not None
        return Hang("not-finished", name, pair, first[0].call.number, first)
    waiting = tuple(Side((rank,), call) for rank, call in sorted(unanswered.items(), key=lambda item: item[0]))
    number = next(iter(unanswered.values())).number
    if len(unanswered) > 1:
        return Hang("peer", name, pair, number, waiting)
    [other] = {*pair} - {*unanswered} or {pair[0]}  # a rank may send to itself
    if other not in dumps.ranks:
        return Hang("missing-dump", name, pair, number, waiting, (other,))
    return Hang("missing-call", name, pair, number, (*waiting, *_absent(dumps, name, [other])))


def _told_apart(hangs: list[Hang]) -> list[Hang]:
    """Mark those whose missed ranks all wait in another hang, unless they wait for each other in a circle.

    A rank whose call has not begun, since it waits in one before, is missed, too.
    """
    held = [[side for side in one.sides if side.call is None or side.elsewhere is not None] for one in hangs]
    missed = [{rank for side in some for rank in side.ranks} for some in held]
    waiting = [{r for s in one.sides for r in s.ranks} - missed[i] for i, one in enumerate(hangs)]
    of_rank: dict[int, list[int]] = defaultdict(list)
    for i, ranks in enumerate(waiting):
        for rank in ranks:
            of_rank[rank].append(i)
    calls = {(_key(s.call), r) for h in hangs for s in h.sides if s.call is not None for r in s.ranks}
    found = []
    for i, one in enumerate(hangs):
        caught = [(side.elsewhere, rank) for side in held[i] if side.elsewhere is not None for rank in side.ranks]
        all_caught = all((_key(call), rank) in calls for call, rank in caught) and len(caught) == len(missed[i])
        circle = bool(caught) and _reaches(i, waiting[i], missed, of_rank)
        follows = one.kind in ("missing-call", "not-finished") and bool(caught) and all_caught and not circle
        found.append(replace(one, follows=follows, circle=circle))
    return found


def _key(call: Call) -> tuple[object, ...]:
    return call.group, call.number, call.peer


def _reaches(start: int, here: set[int], missed: list[set[int]], of_rank: dict[int, list[int]]) -> bool:
    """Whether the ranks that a hang misses wait, through other hangs, for a rank that waits in it."""
    reached, frontier = {*missed[start]}, [*missed[start]]
    while frontier:
        for other in of_rank[frontier.pop()]:
            new = missed[other] - reached if other != start else set()
            reached |= new
            frontier += new
    return bool(reached & here)
