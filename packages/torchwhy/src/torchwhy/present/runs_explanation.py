"""The answers of `torchwhy report` and `torchwhy explain` about a folder of many runs, as documents."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final

from torchwhy.analysis.names import VerdictKind
from torchwhy.present.document import (
    Amount,
    Block,
    Caveat,
    Cell,
    Column,
    Document,
    Name,
    Table,
    VerdictBlock,
    When,
    Words,
    rows_of,
)
from torchwhy.report.job_report import Rank
from torchwhy.report.runs_report import FEWEST, SHARES, Run, RunApart, RunsReport, shares_of
from torchwhy.wording import counted, duration, enumeration, percent

__all__ = ["runs_explanation", "standing_out"]

_NAMED: Final = 20
"""Runs that could not be read."""

_RANKS: Final = 2000
"""Rows of the table of ranks."""

_APART: Final = 8
_FOUND: Final = 6
_NAMED_APART: Final = 3
"""In the short view: runs that stand out, rules that found something, and runs that the sentence names."""

_IS: Final = ("are", "is")


def runs_explanation(folder: str, runs: Sequence[Run], unreadable: Sequence[str]) -> Document:
    """Return a table with a row per run, one of the rules that found something, and one with a row per rank.

    Args:
        folder: with the folders of all runs.
        runs: what was read.
        unreadable: names of runs that could not be read.
    """
    ranks = [(run.name, rank) for run in runs for rank in run.ranks]
    return Document(
        folder,
        (*_left_out(unreadable), _runs(runs), _rules(runs), _ranks(ranks)),
        runs,
        (_about(runs),),
        "report",
        folder,
    )


def standing_out(report: RunsReport) -> Document:
    """Return which runs stand out, and how many are limited by what; in the full view, a row for each run."""
    apart = counted(len(report.apart), "run")
    kind = f"{apart} stand{'' if len(report.apart) > 1 else 's'} out" if report.apart else "No run stands out"
    if len(report.runs) < FEWEST:
        kind = "Too few runs to say which stands out"
    blocks: list[Block] = [
        *_left_out(report.unreadable),
        VerdictBlock(kind, _sentence(report), (), "warning" if report.apart else ""),
        *((_apart(report.apart),) if report.apart else ()),
        _limits(report.runs),
        _rules(report.runs, _FOUND),
        _runs(report.runs, "full"),
    ]
    return Document(report.folder, tuple(blocks), report, (_about(report.runs),), "explain runs", report.folder)


def _sentence(report: RunsReport) -> str:
    """Which runs stand out, what limits most, and how to open one."""
    [(usual, number)] = Counter(run.verdict.kind for run in report.runs).most_common(1)
    of = f"{number:,} of {counted(len(report.runs), 'run')}"
    limit = f"Of {of} nothing can be said" if usual == VerdictKind.UNKNOWN else f"{of} {_IS[number == 1]} {usual.label}"
    names = [one.name for one in report.apart] or [run.name for run in report.runs]
    place = shlex.quote(f"{report.folder.rstrip('/')}/{names[0]}")
    how = f"open {'it' if len(names) == 1 else 'one'} with `torchwhy explain {place}`"
    if not report.apart:
        return f"{limit}; {how}."
    more = len(names) - _NAMED_APART
    named = [*names[:_NAMED_APART], *([f"{more:,} more"] if more > 0 else [])]
    return f"{limit}. {enumeration(named)} {'stand' if len(names) > 1 else 'stands'} out; {how}."


def _apart(runs: Sequence[RunApart]) -> Table:
    return Table(
        (Column("run"), Column("a step", number=True), Column("limited by"), Column("how it differs")),
        rows_of(
            [(Name(one.name), _time(one.step_us), one.limit.label, Words("; ".join(one.reasons))) for one in runs],
            _APART,
        ),
        "Runs that stand out",
        noun=("run", "runs"),
        answers=True,
    )


def _limits(runs: Sequence[Run]) -> Table:
    """What limits how many runs."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.verdict.kind.label, []).append(run)
    rows: list[tuple[Cell, ...]] = []
    for label, those in sorted(found.items(), key=lambda item: -len(item[1])):
        steps = [run.step_us for run in those if run.step_us is not None]
        span = (_time(min(steps)), _time(max(steps))) if steps else ("", "")
        rows.append((label, Amount(f"{len(those):,}", len(those)), *span, Name(those[0].name)))
    titles = ("runs", "shortest step", "longest step")
    columns = (Column("limited by"), *(Column(title, number=True) for title in titles), Column("such as"))
    return Table(columns, rows_of(rows), "What limits the runs", noun=("limit", "limits"))


def _left_out(unreadable: Sequence[str]) -> tuple[Caveat, ...]:
    if not unreadable:
        return ()
    named = [*unreadable[:_NAMED], *([f"{len(unreadable) - _NAMED:,} more"] if len(unreadable) > _NAMED else [])]
    return (Caveat("Left out", f"{counted(len(unreadable), 'run')} could not be read: {', '.join(named)}."),)


def _about(runs: Sequence[Run]) -> str:
    ranks, events = sum(len(run.ranks) for run in runs), sum(run.events for run in runs)
    return f"{counted(len(runs), 'run')}, {counted(ranks, 'rank')}, {events:,} events"


def _runs(runs: Sequence[Run], when: When = "always") -> Table:
    titles = ("ranks", "a step", *SHARES)
    return Table(
        (
            Column("run"),
            *(Column(title, number=True) for title in titles),
            Column("limited by"),
            Column("first finding"),
        ),
        rows_of([_run(run) for run in runs]),
        "Runs",
        ("A step is the median of the ranks' medians, the shares are means of the ranks.",),
        noun=("run", "runs"),
        when=when,
    )


def _run(run: Run) -> tuple[Cell, ...]:
    missing = f" of {len(run.ranks) + run.unreadable}" if run.unreadable else ""
    return (
        Name(run.name),
        Amount(f"{len(run.ranks)}{missing}", len(run.ranks)),
        _time(run.step_us),
        *(Amount(percent(share), share) for share in run.shares),
        run.verdict.kind.label,
        Words(": ".join(run.findings[0])) if run.findings else "",
    )


def _rules(runs: Sequence[Run], limit: int | None = None) -> Table:
    """The rules that found something, and in how many runs."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for rule in dict.fromkeys(rule for rule, _ in run.findings):
            found.setdefault(rule, []).append(run.name)
    rows: list[tuple[Cell, ...]] = [
        (rule, Amount(f"{len(names):,}", len(names)), Name(names[0]))
        for rule, names in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
    columns = (Column("rule"), Column("runs", number=True), Column("such as"))
    return Table(columns, rows_of(rows, limit), "Findings", noun=("rule", "rules"))


def _ranks(ranks: Sequence[tuple[str, Rank]]) -> Table:
    titles = ("rank", "window", "a step", *SHARES)
    more = len(ranks) - _RANKS
    rest = (f"`torchwhy export` has the other {counted(more, 'rank')}, too.",) if more > 0 else ()
    return Table(
        (
            Column("run"),
            *(Column(title, number=True) for title in titles),
            Column("limited by"),
            Column("first finding"),
        ),
        rows_of([_rank(name, rank) for name, rank in ranks[:_RANKS]]),
        "Ranks",
        ("Transfers and waits for other ranks count while nothing is computed.", *rest),
        noun=("rank", "ranks"),
    )


def _rank(name: str, rank: Rank) -> tuple[Cell, ...]:
    return (
        Name(name),
        Amount(str(rank.rank), rank.rank),
        _time(rank.window_us),
        _time(rank.step_us),
        *(Amount(percent(share), share) for share in shares_of(rank)),
        rank.limit.label,
        rank.finding,
    )


def _time(time_us: float | None) -> Cell:
    return "" if time_us is None else Amount(duration(time_us), time_us)
