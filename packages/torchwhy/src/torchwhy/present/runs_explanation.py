"""The report of `torchwhy report` on a folder of many runs, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Final

from torchwhy.present.document import Amount, Caveat, Cell, Column, Document, Name, Table, Words, rows_of
from torchwhy.report.job_report import Rank
from torchwhy.report.runs_report import Run
from torchwhy.wording import counted, duration, percent

__all__ = ["runs_explanation"]

_NAMED: Final = 20
"""Runs that could not be read."""

_RANKS: Final = 2000
"""Rows of the table of ranks."""

_SHARES: Final = ("computes", "transfers", "waits", "idle")


def runs_explanation(folder: str, runs: Sequence[Run], unreadable: Sequence[str]) -> Document:
    """Return a table with a row per run, one of the rules that found something, and one with a row per rank.

    Args:
        folder: with the folders of all runs.
        runs: what was read.
        unreadable: names of runs that could not be read.
    """
    named = [*unreadable[:_NAMED], *([f"{len(unreadable) - _NAMED:,} more"] if len(unreadable) > _NAMED else [])]
    left_out = f"{counted(len(unreadable), 'run')} could not be read: {', '.join(named)}."
    ranks = [(run.name, rank) for run in runs for rank in run.ranks]
    about = f"{counted(len(runs), 'run')}, {counted(len(ranks), 'rank')}, {sum(run.events for run in runs):,} events"
    return Document(
        folder,
        (*((Caveat("Left out", left_out),) if unreadable else ()), _runs(runs), _rules(runs), _ranks(ranks)),
        runs,
        (about,),
        "report",
        folder,
    )


def _runs(runs: Sequence[Run]) -> Table:
    titles = ("ranks", "a step", *_SHARES)
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
    )


def _run(run: Run) -> tuple[Cell, ...]:
    steps = [rank.step_us for rank in run.ranks if rank.step_us is not None]
    parts = zip(*map(_parts, run.ranks), strict=True)
    missing = f" of {len(run.ranks) + run.unreadable}" if run.unreadable else ""
    return (
        Name(run.name),
        Amount(f"{len(run.ranks)}{missing}", len(run.ranks)),
        _time(median(steps) if steps else None),
        *(Amount(percent(share), share) for share in map(fmean, parts)),
        run.verdict.kind.label,
        Words(": ".join(run.findings[0])) if run.findings else "",
    )


def _rules(runs: Sequence[Run]) -> Table:
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
    return Table(columns, rows_of(rows), "Findings", noun=("rule", "rules"))


def _ranks(ranks: Sequence[tuple[str, Rank]]) -> Table:
    titles = ("rank", "window", "a step", *_SHARES)
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
        *(Amount(percent(share), share) for share in _parts(rank)),
        rank.limit.label,
        rank.finding,
    )


def _parts(rank: Rank) -> tuple[float, ...]:
    """The shares of a rank's window in the order of `_SHARES`."""
    waits = min(rank.waited_us, rank.exposed_us)
    return tuple(map(rank.share, (rank.compute_us, rank.exposed_us - waits, waits, rank.window_us - rank.busy_us)))


def _time(time_us: float | None) -> Cell:
    return "" if time_us is None else Amount(duration(time_us), time_us)
