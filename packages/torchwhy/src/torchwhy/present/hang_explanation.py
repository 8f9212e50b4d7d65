"""The report of `torchwhy explain` on the flight-recorder dumps of a job that hangs, as a document."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

import msgspec

from torchwhy.hangs.analysis import Hang, Side, find_hangs
from torchwhy.hangs.dumps import Call, Dumps
from torchwhy.present.document import Block, Caveat, Document, Evidence, FindingItem, Findings, VerdictBlock
from torchwhy.schema import SCHEMA
from torchwhy.wording import counted, enumeration, ranges, shared_path, shortened

__all__ = ["HangReport", "hang_explanation"]

LISTED: Final = 20
"""Hangs in full; of a thousand ranks' pipelines many wait for one."""

SIDES: Final = 8
NAMED: Final = 4
"""Sides of a hang that are listed, and that its title names."""


class WaitingCall(msgspec.Struct, frozen=True):
    """A call that ranks made; see `torchwhy.hangs.dumps.Call`."""

    name: str
    number: int
    group: str
    input_sizes: str
    output_sizes: str
    types: str
    state: str
    done: bool
    line: str
    stack: tuple[str, ...]


class RankSide(msgspec.Struct, frozen=True):
    """Ranks that did the same; see `torchwhy.hangs.analysis.Side`."""

    ranks: tuple[int, ...]
    call: WaitingCall | None
    elsewhere: WaitingCall | None
    last: WaitingCall | None


class ReportedHang(msgspec.Struct, frozen=True):
    """One thing that ranks wait for; see `torchwhy.hangs.analysis.Hang`."""

    kind: str
    title: str
    cause: str
    fix: str
    group: str
    members: tuple[int, ...]
    number: int
    follows: bool
    missing: tuple[int, ...]
    sides: tuple[RankSide, ...]


class HangReport(msgspec.Struct, frozen=True):
    """The answer: `ranks` have dumps, `version` is the format's, `unreadable` names files with the reason."""

    schema: int
    folder: str
    version: str
    ranks: tuple[int, ...]
    unreadable: dict[str, str]
    sentence: str
    hangs: tuple[ReportedHang, ...]


_FIXES: Final = {
    "type": "Make all ranks of the group call the same collectives: look for a branch on the rank, or on a value that "
    "differs between ranks, around these lines.",
    "order": "Let all ranks of the group call in the same order: sort what is iterated over (sets, dictionaries, "
    "files), and use a separate process group for each thread or stream with collectives.",
    "size": "Bring tensors of one size to it: check the last batch, padding and sharding; exchange sizes first, or use "
    "the variant for uneven sizes.",
    "dtype": "Convert to one type before the call: look for autocast, or a parameter left in another type, on some "
    "ranks.",
    "missing-call": "Find out why these ranks don't come here: a branch on the rank, one batch less, an exception that "
    "was caught, a slow checkpoint or evaluation on one rank.",
    "missing-dump": "Look at the logs of the ranks without a dump: they ended or crashed, or their host is gone. If "
    "their dumps lie elsewhere, copy them here.",
    "peer": "Let one of the two receive first, or post both with batch_isend_irecv.",
    "not-finished": "Nothing in these calls explains it. Where the job went on after the dumps were written, it was "
    "under way; else look at the network and the devices of these ranks (NCCL_DEBUG=INFO), and at what runs on the "
    "device before it.",
}

_FOLLOWS: Final = "First fix the call in which these ranks wait: this call waits for it."
_CIRCLE: Final = (
    "Let all ranks call collectives of several groups in the same order, and sends before recvs on one side."
)


def hang_explanation(dumps: Dumps) -> Document:
    """Return what ranks wait for, who is missing or differs, and at which line."""
    hangs = find_hangs(dumps)
    reported = tuple(_reported(one) for one in hangs)
    sentence = _sentence(dumps, reported)
    blocks: list[Block] = [Caveat("Left out", f"{name}: {why}.") for name, why in [*dumps.unreadable.items()][:LISTED]]
    kind = "Hangs" if any(one.kind != "not-finished" or one.circle for one in hangs) else "Not over"
    kind = kind if hangs else "Nothing hangs"
    blocks.append(VerdictBlock(kind, sentence, _caveats(dumps, hangs), "bad" if hangs else "good"))
    items = tuple(_item(one) for one in reported[:LISTED])
    nothing = "No rank waits in a collective, a send or a recv." if not hangs else ""
    blocks.append(Findings(items, nothing, "What the ranks wait for, causes first"))
    data = HangReport(
        SCHEMA, shared_path(dumps.folder), dumps.version, tuple(dumps.ranks), dumps.unreadable, sentence, reported
    )
    about = (
        f"{counted(len(dumps.ranks), 'rank')} with a dump of the flight recorder, format {dumps.version or 'unknown'}"
    )
    return Document(PurePath(dumps.folder).name, tuple(blocks), data, (about,), file=dumps.folder)


def _sentence(dumps: Dumps, hangs: tuple[ReportedHang, ...]) -> str:
    if not hangs:
        return f"All calls that {counted(len(dumps.ranks), 'rank')} recorded are over."
    follow = sum(one.follows for one in hangs)
    more = f" {counted(len(hangs) - 1, 'further call')} waits." if len(hangs) == 2 else ""
    more = f" {len(hangs) - 1:,} further calls wait." if len(hangs) > 2 else more
    if follow:
        more += f" {follow:,} of them only since the ranks that are awaited wait elsewhere."
    return f"{hangs[0].title}.{more}"


def _caveats(dumps: Dumps, hangs: tuple[Hang, ...]) -> tuple[str, ...]:
    found = []
    calls = [side.call for one in hangs for side in one.sides if side.call is not None]
    if calls and not any(call.stack for call in calls):
        found.append(
            "These dumps have no stacks, so no line is named: the JSON form leaves them out, the pickle has them."
        )
    if not any(members for dump in dumps.ranks.values() for members in dump.members.values()):
        found.append("The dumps do not say which ranks belong to a group: those that called are taken for all of it.")
    return tuple(found)


def _reported(one: Hang) -> ReportedHang:
    fix = _CIRCLE if one.circle else _FOLLOWS if one.follows and one.kind == "not-finished" else _FIXES[one.kind]
    return ReportedHang(
        one.kind, _title(one), _cause(one), fix, _group(one.group), one.members, one.number, one.follows,
        one.missing, tuple(_side(side) for side in one.sides),
    )  # fmt: skip


def _side(side: Side) -> RankSide:
    return RankSide(side.ranks, _call(side.call), _call(side.elsewhere), _call(side.last))


def _call(call: Call | None) -> WaitingCall | None:
    if call is None:
        return None
    return WaitingCall(
        call.name, call.number, _group(call.group), call.input_sizes, call.output_sizes, call.types, call.state,
        call.done, call.line, call.stack,
    )  # fmt: skip


def _group(group: tuple[str, str]) -> str:
    name, desc = group
    return desc if desc and desc != "undefined" else f"group {name}"


def _ranks(numbers: tuple[int, ...]) -> str:
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {ranges(numbers)}"


def _what(one: Hang, call: Call) -> str:
    """A call with its number and its group, such as "all_reduce 12 of default_pg"."""
    return f"{call.name} {one.number} of {_group(one.group)}"


def _verb(side: Side, one: str, many: str) -> str:
    return f"{_ranks(side.ranks)} {one if len(side.ranks) == 1 else many}"


def _title(one: Hang) -> str:
    text = _differing(one) if one.kind in ("type", "order", "size", "dtype") else _waiting(one)
    return text[0].upper() + text[1:]


def _differing(one: Hang) -> str:
    """The title of a hang in which ranks do not do the same."""
    called = [(side, side.call) for side in one.sides if side.call is not None]
    what = _what(one, called[0][1])
    others = ["others differ, too"] if len(called) > NAMED else []
    if one.kind in ("type", "order"):
        parts = [f"{_verb(side, 'calls', 'call')} {call.name}" for side, call in called[:NAMED]]
        how = " in another order" if one.kind == "order" else ""
        return f"ranks disagree{how} on call {one.number} of {_group(one.group)}: {enumeration([*parts, *others])}"
    if called[0][1].peer is not None:
        words = {"send": "sends", "recv": "receives"}
        parts = [f"{_ranks(side.ranks)} {words[call.name]} {_brought(one, call)}" for side, call in called]
        return f"{enumeration(parts)} in {what}"
    parts = [f"{_verb(side, 'brings', 'bring')} {_brought(one, call)}" for side, call in called[:NAMED]]
    return f"{what} gets different {'sizes' if one.kind == 'size' else 'types'}: {enumeration([*parts, *others])}"


def _waiting(one: Hang) -> str:
    """The title of a hang in which ranks wait for others, or for nothing that is known."""
    called = [side for side in one.sides if side.call is not None]
    absent = tuple(sorted(rank for side in one.sides if side.call is None for rank in side.ranks))
    first = called[0]
    assert first.call is not None
    waits = f"{_verb(first, 'waits', 'wait')} in {_what(one, first.call)}"
    if one.kind == "missing-call" and first.call.peer is not None:
        other = "recv" if first.call.name == "send" else "send"
        return f"{waits}, and {_ranks(absent)} {'has' if len(absent) == 1 else 'have'} no {other} for it"
    if one.kind == "missing-call":
        return f"{waits}, and {_ranks(absent)} {'does' if len(absent) == 1 else 'do'} not call it"
    if one.kind == "missing-dump":
        return f"{waits}, and {_ranks(one.missing)} left no dump that can be read"
    if one.kind == "peer":
        return f"{enumeration([_ranks(side.ranks) for side in called])} wait for each other, both in {first.call.name}"
    if first.call.peer is not None:
        return f"{_what(one, first.call)} between {_ranks(one.members)} has its other side, and is not over"
    everyone = tuple(sorted(rank for side in called for rank in side.ranks))
    where = " everywhere" if any(side.call is not None and side.call.done for side in called) else ""
    return f"{_ranks(everyone)} called {_what(one, first.call)} alike, and it is not over{where}"


def _brought(one: Hang, call: Call) -> str:
    if one.kind == "dtype":
        return call.types
    if call.peer is not None:
        return _sizes(call.input_sizes if call.name == "send" else call.output_sizes)
    given, made = _sizes(call.input_sizes), _sizes(call.output_sizes)
    return given if call.input_sizes == call.output_sizes else f"{given} for {made}"


def _sizes(text: str) -> str:
    return shortened(text, 120)


def _cause(one: Hang) -> str:
    called = [side for side in one.sides if side.call is not None]
    sentences = []
    for side in one.sides[:SIDES]:
        who = _ranks(side.ranks)
        who = who[0].upper() + who[1:]
        if side.call is not None:
            before = f"; {_named(side.elsewhere)}, called before it, is not over" if side.elsewhere is not None else ""
            at = f" at {side.call.line}" if side.call.line else ""
            sentences.append(f"{who}: {side.call.name}{at}, {_state(side.call)}{before}.")
        elif side.elsewhere is not None:
            waits = "waits" if len(side.ranks) == 1 else "wait"
            sentences.append(f"{who}: {waits} elsewhere, in {_named(side.elsewhere)}.")
        elif side.last is not None:
            sentences.append(f"{who}: last seen in {_named(side.last)}, which is over; in no call since.")
        else:
            sentences.append(f"{who}: no call of this group is recorded.")
    if (
        one.kind in ("type", "order", "size", "dtype")
        and len(called) > 1
        and len(called[0].ranks) > len(called[1].ranks)
    ):
        odd = tuple(sorted(rank for side in called[1:] for rank in side.ranks))
        sentences.append(f"Most ranks agree; {_ranks(odd)} {'differs' if len(odd) == 1 else 'differ'}.")
    if one.missing and one.kind != "missing-dump":
        sentences.append(f"No dump of {_ranks(one.missing)}.")
    if one.circle:
        sentences.append("They wait in a circle: ranks that are awaited here wait elsewhere for ranks that wait here.")
    if one.follows:
        sentences.append("The ranks that are awaited wait in another call of this list, which is the cause.")
    return " ".join(sentences)


def _named(call: Call) -> str:
    """A call with number, group and line."""
    return f"{call.name} {call.number} of {_group(call.group)}{f' at {call.line}' if call.line else ''}"


def _state(call: Call) -> str:
    if call.done:
        return "over"
    if not call.seen_on_device:
        return "not over"
    return {"scheduled": "not begun on the device", "started": "begun and not over"}.get(call.state, call.state)


def _item(one: ReportedHang) -> FindingItem:
    calls = [side.call for side in one.sides if side.call is not None]
    return FindingItem(
        code="hang",
        slug=one.kind,
        title=one.title,
        severity="low" if one.follows else "high",
        evidence=tuple(_evidence(side) for side in one.sides[:SIDES]),
        why=one.cause,
        fix=one.fix,
        place=next((call.line for call in calls if call.line), ""),
    )


def _evidence(side: RankSide) -> Evidence:
    call = side.call or side.elsewhere or side.last
    who = _ranks(side.ranks)
    if call is None:
        return Evidence(who, "no call is recorded", full_name=who)
    facts = f"{call.name} {call.number} of {call.group}, {_sizes(call.input_sizes)} {call.types}, {call.state}"
    prefix = "" if side.call is not None else "elsewhere: " if side.elsewhere is not None else "last: "
    return Evidence(who, f"{prefix}{facts}", line=call.line, full_name=who)
