"""The report of `torchwhy explain` on the traces of all ranks of a program, as a document."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from torchwhy.present.document import (
    Caveat,
    Cell,
    Column,
    Document,
    Evidence,
    FindingItem,
    Findings,
    Name,
    Table,
    Words,
    rows_of,
)
from torchwhy.present.explanation import CALL_FOR_RULES, verdict_block
from torchwhy.present.findings import finding_item, nothing_found, rule_outcomes
from torchwhy.report.job_report import Collective, JobReport, Rank, outliers_first
from torchwhy.report.trace_report import ReportedFinding
from torchwhy.wording import counted, duration, percent, size_text

__all__ = ["job_explanation"]

_RANKS: Final = 16
_MOST: Final = 200
"""Rows of the table of ranks, in the full view."""
_TIMES: Final = {
    "step_us": "a step",
    "compute_us": "computes",
    "exposed_us": "only communicates",
    "waited_us": "waits for others",
    "idle_us": "idle",
    "waited_for_us": "others wait for it",
}
_COLLECTIVES: Final = 5
_RANK: Final = re.compile(r"rank \d+")


def job_explanation(report: JobReport) -> Document:
    """Return everything: ranks, verdict, what filled each rank's time, collectives, findings, rules."""
    items = tuple(_item(finding) for finding in report.findings)
    nothing = nothing_found(report.verdict.kind, len(report.ran), with_stacks=False)
    return Document(
        report.trace.name,
        (
            *(Caveat("Left out", repair.sentence) for repair in report.trace.repairs),
            verdict_block(report.verdict),
            *((_spread(report),) if len(report.ranks) > _RANKS else ()),
            _ranks(report),
            *((_collectives(report.collectives),) if report.collectives else ()),
            Findings(items, nothing, "Findings, the most time at stake first"),
            rule_outcomes(report.ran, report.muted, report.failed),
            *((CALL_FOR_RULES,) if report.findings else ()),
        ),
        report,
        (_about(report),),
        "explain",
        report.folder,
    )


def _item(finding: ReportedFinding) -> FindingItem:
    """A finding without moments, since each rank has its own clock; its evidence is a rank, or a name on all."""
    item = finding_item(finding, None)
    return replace(item, evidence=tuple(replace(one, target=_target(one)) for one in item.evidence))


def _target(one: Evidence) -> str:
    """What evidence is on the timeline of all ranks."""
    return f"rank:{one.name[5:]}" if _RANK.fullmatch(one.name) else f"name:{one.full_name}"


def _about(report: JobReport) -> str:
    ranks = counted(len(report.ranks), "rank")
    of = f" of {report.world_size}" if (report.world_size or 0) > len(report.ranks) else ""
    how = "" if report.numbered else " \u00b7 files were counted, since they have no rank numbers"
    return f"{ranks}{of} \u00b7 {counted(report.trace.events, 'event')}{how}"


def _spread(report: JobReport) -> Table:
    """How the times of many ranks differ."""
    rows: list[tuple[Cell, ...]] = [
        (
            _TIMES[row.name],
            *(duration(us) for us in (row.least_us, row.low_us, row.middle_us, row.high_us, row.most_us)),
            *(Words(str(rank), f"rank:{rank}") for rank in (row.least_rank, row.most_rank)),
        )
        for row in report.spread
    ]
    titles = ("least", "5%", "middle", "95%", "most", "least: rank", "most: rank")
    return Table(
        (Column("time of a rank"), *(Column(title, number=True) for title in titles)),
        rows_of(rows),
        f"Spread of {counted(len(report.ranks), 'rank')}",
        noun=("time", "times"),
    )


def _ranks(report: JobReport) -> Table:
    many = len(report.ranks) > _RANKS
    shown = outliers_first(report.ranks)[:_MOST] if many else report.ranks
    last = {row.rank: f"{percent(row.last / row.of)} of {row.of:,}" for row in report.stragglers if row.last}
    titles = ("window", "a step", "computes", "transfers", "waits", "idle", "came last")
    return Table(
        (Column("rank"), *(Column(title, number=True) for title in titles)),
        rows_of([_rank(row, last.get(row.rank, "")) for row in shown], _RANKS),
        "Ranks",
        (
            "Transfers and waits for other ranks count while nothing is computed. A step (median) lasts until the GPU "
            "work begun in it is done: behind a host that runs ahead, steps overlap.",
            *((_order(report),) if many else ()),
        ),
        noun=("rank", "ranks"),
    )


def _order(report: JobReport) -> str:
    """How a table of many ranks is ordered, and where the ranks are that it leaves out."""
    order = "The ranks whose times differ most from the median rank's come first"
    rest = len(report.ranks) - _MOST
    if rest <= 0:
        return f"{order}."
    return f"{order}; `torchwhy export FOLDER --to csv` has the other {counted(rest, 'rank')}, too."


def _rank(row: Rank, last: str) -> tuple[Cell, ...]:
    waits = min(row.waited_us, row.exposed_us)
    shares = (row.compute_us, row.exposed_us - waits, waits, row.window_us - row.busy_us)
    return (
        Words(str(row.rank), f"rank:{row.rank}"),
        duration(row.window_us),
        duration(row.step_us) if row.step_us is not None else "",
        *(percent(row.share(us)) if row.window_us else "" for us in shares),
        last,
    )


def _collectives(rows: tuple[Collective, ...]) -> Table:
    titles = ("ranks", "a rank's", "time", "hidden", "transfers", "waits", "size", "bus GB/s")
    return Table(
        (Column("collective"), Column("library"), *(Column(title, number=True) for title in titles)),
        rows_of([_collective(row) for row in rows], _COLLECTIVES),
        "Collectives",
        noun=("collective", "collectives"),
    )


def _collective(row: Collective) -> tuple[Cell, ...]:
    parts = (row.time_us - row.exposed_us, row.exposed_us - row.waiting_us, row.waiting_us)
    return (
        Name(row.name),
        row.library,
        str(row.group_size or ""),
        f"{row.count:,.0f}",
        duration(row.time_us),
        *(percent(us / row.time_us) if row.time_us else "" for us in parts),
        size_text(row.median_bytes) if row.median_bytes is not None else "",
        f"{row.bus_gb_s:.1f}" if row.bus_gb_s is not None else "",
    )
