"""The answer of `torchwhy try`, as a document."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import msgspec

from torchwhy.present.document import (
    Block,
    Code,
    Column,
    Document,
    Row,
    Table,
    Text,
    VerdictBlock,
    Words,
)
from torchwhy.schema import SCHEMA
from torchwhy.tuning.search import Search
from torchwhy.tuning.trial import ERROR, ROOM, Tried
from torchwhy.wording import counted, duration, enumeration, percent, seconds

__all__ = ["TriedChange", "TryAnswer", "try_document"]

LATER_US = 1e6
"""A start that takes longer by less is not worth a word."""


class TriedChange(msgspec.Struct, frozen=True):
    """A change and what became of it.

    Attributes:
        name: in a few words.
        kind: "helps", "no difference seen", "undecided", "slower", "changes the results" or "could not be tried".
        sentence: the same for people.
        speedup: how many times as many steps run in the same time, and in `low` and `high` the interval that holds it
            with `confidence`; null where the change could not be tried.
        faster: whether it is faster, beyond the noise and corrected for the number of changes.
        answers: slugs of the findings that it may answer.
        stake: the share of the time that these put at stake.
        results: comparison with the unchanged program's results.
        difference: the largest relative difference of results; null where they were not compared or have other shapes.
        compared: what was compared.
        inexact: how the change alters the arithmetic; "" where it does not.
        later_us: by how much its first steps are over later.
        runs: of the changed program.
        permanent: lines to write.
    """

    name: str
    kind: str
    sentence: str
    speedup: float | None
    low: float | None
    high: float | None
    confidence: float
    faster: bool
    answers: tuple[str, ...]
    stake: float
    results: str
    difference: float | None
    compared: tuple[str, ...]
    inexact: str
    later_us: float
    runs: int
    permanent: tuple[str, ...]


class TryAnswer(msgspec.Struct, frozen=True):
    """The result of `torchwhy try`.

    Attributes:
        kind: "helps"; "undecided" if a change is undecided, or changes that findings ask for could not be tried;
            else "nothing helps".
        best: names of the changes to keep.
        permanent: the lines that keep them.
        steps_from: what begins a step; "" where whole runs were timed.
        steps: that count in each run.
        step_us: of the unchanged program.
    """

    schema: int
    command: tuple[str, ...]
    kind: str
    sentence: str
    best: tuple[str, ...]
    permanent: tuple[str, ...]
    steps_from: str
    steps: int
    step_us: float
    changes: tuple[TriedChange, ...]
    together: TriedChange | None
    budget_s: float
    spent_s: float
    caveats: tuple[str, ...]


def try_document(found: Search) -> Document:
    """Return what helps, a line for each change, and how to keep what helps."""
    answer = _answer(found)
    blocks: list[Block] = [
        VerdictBlock(answer.kind, answer.sentence, found.caveats, look="good" if found.best else "warning"),
        _table(found),
    ]
    if answer.permanent:
        blocks.append(Code(answer.permanent, title="To keep it"))
    for one in found.tried:
        if one.faster and one.kind == "changes the results":
            text = f"{one.change.name} makes it faster, too, but changes the results; if that is right: "
            blocks.append(Text(text + "; ".join(one.change.permanent)))
        blocks += [Text(f"{one.change.name}: {cost}.") for cost in _costs(one)]
    blocks.append(Text(_note(found), look="dim"))
    return Document(" ".join(found.command), tuple(blocks), answer, command="try")


def _answer(found: Search) -> TryAnswer:
    best = [found.tried[i] for i in found.best]
    permanent = tuple(line for one in best for line in one.change.permanent)
    together = _tried(found.together) if found.together else None
    return TryAnswer(
        SCHEMA, found.command, _kind(found), _sentence(found),
        tuple(one.change.name for one in best),
        permanent, found.label, found.steps, found.step_us, tuple(map(_tried, found.tried)), together, found.budget_s,
        found.spent_s, found.caveats,
    )  # fmt: skip


def _open(found: Search) -> list[Tried]:
    """Changes that may help, for all that was measured."""
    untried = [one for one in found.tried if one.kind == "could not be tried"]
    asked = untried if len(untried) == len(found.tried) else [one for one in untried if one.change.answers]
    return [*asked, *(one for one in found.tried if one.kind == "undecided")]


def _kind(found: Search) -> str:
    return "helps" if found.best else "undecided" if _open(found) else "nothing helps"


def _sentence(found: Search) -> str:
    best = [found.tried[i] for i in found.best]
    count = Counter("not tried" if one.kind == "could not be tried" else one.kind for one in found.tried)
    measured = counted(len(found.tried) - count["not tried"], "change")
    if not best:
        rest = [f"{count[kind]} {kind}" for kind in ("undecided", "not tried") if count[kind]]
        how_many = f"{measured} measured{''.join(f', {one}' for one in rest)}."
        if any(one.faster for one in found.tried):
            return f"Only what changes the results was shown to make the program faster; {how_many}"
        if _open(found):
            return f"No change was shown to make the program faster, and some may; {how_many}"
        return f"No change makes the program faster by more than {percent(ROOM)}; {how_many}"
    whole = found.together if len(best) > 1 and found.together else best[0]
    names = enumeration([one.change.name for one in best])
    what = "Steps are" if found.label else "The run is"
    return f"{what} {_speed(whole)} times as fast with {names}; before: {duration(found.step_us)}."


def _speed(one: Tried) -> str:
    return f"{1 / one.shift.ratio:.2f} ({_interval(one)})"


def _interval(one: Tried) -> str:
    return f"{1 / one.shift.high:.2f} to {1 / one.shift.low:.2f}"


def _said(one: Tried) -> str:
    """What became of a change, for people."""
    if one.kind == "could not be tried":
        return f"could not be tried: {one.reason}"
    kind = "changes the results," if one.kind == "changes the results" else one.kind
    return "; ".join([f"{kind} {1 / one.shift.ratio:.2f}x ({_interval(one)})", *_costs(one)])


def _costs(one: Tried) -> Iterator[str]:
    """The cost of a change that makes the program faster."""
    if one.faster and one.change.inexact:
        yield one.change.inexact
    if one.faster and one.later_us > LATER_US:
        steps = counted(math.ceil(one.later_us / one.saved_us), "step") if one.saved_us > 0 else "no number of steps"
        yield f"it starts {duration(one.later_us)} later, made up for by {steps}"


def _table(found: Search) -> Table:
    columns = (Column("change"), Column("verdict"), Column("speed"), Column("results"))
    everything = [*found.tried, *([found.together] if found.together else [])]
    rows = tuple(Row((Words(one.change.name), one.kind, *_measured(one))) for one in everything)
    asked = [one for one in found.tried if one.change.answers]
    slugs = dict.fromkeys(slug for one in asked for slug in one.change.answers)
    sentences = (f"Findings ask for the first {len(asked)}: {enumeration([*slugs])}.",) if asked else ()
    return Table(columns, rows, "Changes", sentences, noun=("change", "changes"), answers=True)


def _measured(one: Tried) -> tuple[str, Words]:
    if one.agreement is None:
        return "-", Words(one.reason)
    return f"{1 / one.shift.ratio:.2f}x ({_interval(one)})", Words(one.agreement.said)


def _tried(one: Tried) -> TriedChange:
    measured, agreement = one.agreement is not None, one.agreement
    finite = agreement is not None and math.isfinite(agreement.largest)
    return TriedChange(
        one.change.name, one.kind, _said(one), 1 / one.shift.ratio if measured else None,
        1 / one.shift.high if measured else None, 1 / one.shift.low if measured else None, one.confidence, one.faster,
        one.change.answers, one.change.stake, agreement.said if agreement else "",
        agreement.largest if agreement and finite else None, agreement.compared if agreement else (),
        one.change.inexact, one.later_us, one.runs, one.change.permanent,
    )  # fmt: skip


def _note(found: Search) -> str:
    of = f"{counted(found.steps, 'step')} of each run ({found.label})" if found.label else "each run"
    return (
        f"Speed: 2.00x means that {of} took half of the unchanged program's time, in new processes, alternately; "
        "in parentheses its interval. "
        f"With {percent(1 - ERROR)} confidence no change is said to help by chance, all of them together. "
        f"{seconds(found.spent_s)} of {seconds(found.budget_s)} spent."
    )
