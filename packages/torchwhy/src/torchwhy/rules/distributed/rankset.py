"""Whether the traces of a job belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.rule import rule
from torchwhy.wording import ranges

if TYPE_CHECKING:
    from torchwhy.ranks.job import Job

__all__ = ["rank_set"]


@rule("A16", "rank-set", source="rank and world_size of distributedInfo, and the numbers of the steps", on="job")
def rank_set(job: Job) -> Iterator[Finding]:
    """The traces in a folder don't make one job.

    Sees: ranks missing or there twice, traces that disagree on the number of ranks, on the steps they recorded, on the
    backend or on the device; files that can't be read.

    Costs: who waits for whom is known only among ranks of one run, in the steps all of them recorded.

    Fix: keep one folder per run, and let all ranks record the same steps.

    Known problems: a rank whose file was cut short counts as recorded; steps are compared by their names, not by their
    times.
    """
    numbers, world = job.numbers, job.world_size
    wanted = set(range(world)) if world and job.wanted is None else set(job.wanted or ())
    missing = sorted(wanted - set(numbers)) if job.numbered else []
    if missing:
        unread = f" Could not be read: {len(job.unreadable)}." if job.unreadable else ""
        yield _finding(
            job,
            f"{len(missing)} of {len(wanted)} ranks have no trace here: {ranges(missing)}",
            "medium",
            [Evidence(name, note=why) for name, why in list(job.unreadable.items())[:5]],
            "The program had more ranks than the folder has traces; a missing one may be the one waited for." + unread,
            "Record all ranks, into one folder.",
        )
    if job.others:
        twice = sorted({s.rank for s in job.others if s.rank is not None})
        yield _finding(
            job,
            f"{len(job.others)} traces too many: {_ranks(twice)} there more than once",
            "medium",
            [Evidence(Path(s.file).name, note=f"rank {s.rank}, left out") for s in job.others[:5]],
            "Several windows were recorded, or several runs share the folder; one trace of each rank was taken.",
            "Keep one folder per run and per recorded window.",
        )
    facts = (
        ("number of ranks", "high", [s.world_size for s in job.summaries]),
        ("steps", "medium", [_steps(s.steps) for s in job.summaries]),
        ("backend", "medium", [s.backend for s in job.summaries]),
        ("device", "low", [s.device or None for s in job.summaries]),
    )
    for what, severity, values in facts:
        found = Counter(value for value in values if value is not None)
        if len(found) < 2:
            continue
        usual = found.most_common(1)[0][0]
        odd = [rank for rank, value in zip(numbers, values, strict=True) if value is not None and value != usual]
        yield _finding(
            job,
            f"{_ranks(odd).capitalize()} recorded other steps than the rest"
            if what == "steps"
            else f"The {what} differs between ranks: {usual}, but {values[numbers.index(odd[0])]} on {_ranks(odd)}",
            severity,
            [Evidence(str(value), count, note="ranks") for value, count in found.most_common(5)],
            "Traces of different runs, or ranks that recorded different parts of one."
            if what != "device"
            else "Ranks run on different hardware; the slowest sets the pace.",
            "Keep one folder per run; start and stop recording in the same step on all ranks."
            if what != "device"
            else "Use equal devices, or give the slower ones less work.",
        )


def _finding(job: Job, title: str, severity: str, evident: list[Evidence], cause: str, fix: str) -> Finding:
    return Finding(
        title=title,
        severity=severity,
        confidence="high",
        window=job.summaries[0].window,
        evidence=tuple(evident),
        cause=cause,
        fix=fix,
        linked=True,
    )


def _ranks(numbers: list[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def _steps(names: tuple[str, ...]) -> str | None:
    if not names:
        return None
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"
