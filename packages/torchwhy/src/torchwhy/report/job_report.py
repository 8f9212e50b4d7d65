"""The report on a job: the traces of all ranks of a program. It shares the keys of a trace's report where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

import msgspec
import numpy as np

from torchwhy.analysis.names import VerdictKind
from torchwhy.analysis.repairs import Repair
from torchwhy.analysis.verdict import Verdict
from torchwhy.finding import Finding
from torchwhy.ranks.job import Job
from torchwhy.report.trace_report import (
    FailedRule,
    MutedRule,
    ReportedFinding,
    failed_rules,
    reported,
)
from torchwhy.schema import SCHEMA
from torchwhy.wording import counted, percent

__all__ = [
    "Collective",
    "JobFiles",
    "JobReport",
    "Rank",
    "Spread",
    "Straggler",
    "UnreadableFile",
    "describe_job",
    "outliers_first",
]

_NAMED: Final = 20
"""Traces that could not be read, each in a sentence; `unreadable` has all."""

_COMPARED: Final = ("step", "compute", "exposed", "waited", "idle", "waited_for")
"""Times of ranks whose spread is described, in the order of the table."""

_LARGE: Final = 0.2
"""If exchanges alone take at least this share of the window, they limit a job."""


class JobFiles(msgspec.Struct, frozen=True):
    """The folder, and what in it takes no part."""

    file: str
    name: str
    events: int
    start_us: float
    repairs: tuple[Repair, ...]


class Rank(msgspec.Struct, frozen=True):
    """A row of `Job.ranks`."""

    rank: int
    steps: int
    step_us: float | None
    window_us: float
    busy_us: float
    idle_us: float
    compute_us: float
    communication_us: float
    exposed_us: float
    collectives: int
    waited_us: float
    waited_for_us: float
    straggling: float
    limit: VerdictKind
    finding: str
    truncated: bool
    device: str
    file: str

    def share(self, time_us: float) -> float:
        """A time as a fraction of the rank's window; 0 of an empty one."""
        return time_us / self.window_us if self.window_us else 0.0


class Spread(msgspec.Struct, frozen=True):
    """How a time differs between ranks: percentiles, and the ranks with the least and the most."""

    name: str
    least_us: float
    low_us: float
    middle_us: float
    high_us: float
    most_us: float
    least_rank: int
    most_rank: int


class Collective(msgspec.Struct, frozen=True):
    """A row of `Job.collectives`."""

    name: str
    library: str
    group_size: int
    count: float
    median_bytes: int | None
    time_us: float
    exposed_us: float
    waiting_us: float
    algorithm_gb_s: float | None
    bus_gb_s: float | None


class Straggler(msgspec.Struct, frozen=True):
    """A row of `Job.stragglers`."""

    rank: int
    last: int
    of: int
    waited_for_us: float
    most: int
    of_steps: int


class UnreadableFile(msgspec.Struct, frozen=True):
    """A file that could not be read, and why."""

    file: str
    reason: str


class JobReport(msgspec.Struct, frozen=True):
    """Everything there is to say of a job; `ran` are the rules that were asked."""

    schema: int
    folder: str
    world_size: int | None
    numbered: bool
    ranks: tuple[Rank, ...]
    spread: tuple[Spread, ...]
    collectives: tuple[Collective, ...]
    stragglers: tuple[Straggler, ...]
    duplicates: tuple[str, ...]
    unreadable: tuple[UnreadableFile, ...]
    ignored: tuple[str, ...]
    trace: JobFiles
    verdict: Verdict
    findings: tuple[ReportedFinding, ...]
    muted: tuple[MutedRule, ...]
    failed: tuple[FailedRule, ...]
    ran: tuple[str, ...]


def describe_job(job: Job, findings: Sequence[Finding], ran: Sequence[str] = ()) -> JobReport:
    """Return everything there is to say of a job.

    Args:
        job: what was read.
        findings: what the rules found in it.
        ran: codes of the rules that were asked.
    """
    ranks = msgspec.convert(job.ranks.rows(), tuple[Rank, ...])
    events = sum(summary.events for summary in job.summaries)
    return JobReport(
        schema=SCHEMA,
        folder=job.folder,
        world_size=job.world_size,
        numbered=job.numbered,
        ranks=ranks,
        spread=_spread(ranks),
        collectives=msgspec.convert(job.collectives().rows(), tuple[Collective, ...]),
        stragglers=msgspec.convert(job.stragglers().rows(), tuple[Straggler, ...]),
        duplicates=tuple(Path(other.file).name for other in job.others),
        unreadable=tuple(UnreadableFile(name, why) for name, why in sorted(job.unreadable.items())),
        ignored=job.ignored,
        trace=JobFiles(job.folder, PurePath(job.folder).name or job.folder, events, 0.0, _left_out(job)),
        verdict=_verdict(ranks, job),
        findings=tuple(reported(finding) for finding in findings),
        muted=(),
        failed=failed_rules(job.failed),
        ran=tuple(code for code in ran if code not in job.failed),
    )


def outliers_first(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Order ranks by the largest distance of one of their times from its median over all ranks; the farthest first."""
    if not ranks:
        return ()
    times = np.array([[getattr(rank, f"{name}_us") or 0.0 for name in _COMPARED] for rank in ranks])
    away = np.abs(times - np.median(times, axis=0)).max(axis=1)
    return tuple(ranks[i] for i in np.argsort(-away, kind="stable").tolist())


def _spread(ranks: Sequence[Rank]) -> tuple[Spread, ...]:
    """The spread of each time, of those ranks that have it."""
    found = []
    for name in _COMPARED:
        known = [(rank.rank, time) for rank in ranks if (time := getattr(rank, f"{name}_us")) is not None]
        if known:
            times = np.array([time for _, time in known])
            least, low, middle, high, most = np.percentile(times, (0, 5, 50, 95, 100)).tolist()
            first, last = known[int(times.argmin())][0], known[int(times.argmax())][0]
            found.append(Spread(f"{name}_us", least, low, middle, high, most, first, last))
    return tuple(found)


def _left_out(job: Job) -> tuple[Repair, ...]:
    """What of the folder takes no part."""
    found = [
        Repair("unreadable", 1, f"{name} could not be read: {why}")
        for name, why in sorted(job.unreadable.items())[:_NAMED]
    ]
    more = len(job.unreadable) - len(found)
    if more:
        found.append(Repair("unreadable", more, f"{counted(more, 'further trace')} could not be read"))
    names = [Path(other.file).name for other in job.others]
    if names:
        files = counted(len(names), "further trace")
        sentence = f"{files} of ranks that are there already left out: {', '.join(names[:3])}"
        found.append(Repair("duplicates", len(names), sentence))
    return tuple(found)


def _verdict(ranks: Sequence[Rank], job: Job) -> Verdict:
    """What limits the rank in the middle, by the time it only communicates: one slow rank makes all others wait.

    All numbers are that rank's, so that they are parts of one window. Where it doesn't mostly communicate, and the
    verdict on each rank alone is the same, that is the job's.
    """
    on_gpu = any(summary.on_gpu for summary in job.summaries)
    timed = sorted((rank for rank in ranks if rank.window_us), key=lambda rank: rank.share(rank.exposed_us))
    if not timed:
        return Verdict(VerdictKind.UNKNOWN, "Can't tell, because no rank's trace holds events with a duration.", ())
    middle = timed[len(timed) // 2]
    computing, exposed = middle.share(middle.compute_us), middle.share(middle.exposed_us)
    rest = 1 - middle.share(middle.busy_us)
    place = ""
    if len(timed) == 2:
        place = f"which communicates more than rank {timed[0].rank}, "
    elif len(timed) > 2:
        place = f"the median of {counted(len(timed), 'rank')} by communication, "
    numbers = f"on rank {middle.rank}, {place}" + (
        f"the GPU computes for {percent(computing)} of the time, only communicates for {percent(exposed)} and is idle "
        f"for {percent(rest)}"
        if on_gpu
        else f"operators compute for {percent(computing)} of the time, it only communicates for {percent(exposed)} and "
        f"does neither for {percent(rest)}"
    )
    if exposed >= _LARGE and exposed >= rest:
        waiting = 2 * middle.waited_us >= middle.exposed_us
        do = "wait for each other" if waiting else "exchange data while they compute nothing"
        return Verdict(VerdictKind.COMMUNICATION, f"The ranks {do}: {numbers}.", ())
    alone = {rank: summary.verdict for rank, summary in zip(job.numbers, job.summaries, strict=True)}
    kinds = {found.kind for found in alone.values()}
    if len(alone) > 1 and len(kinds) == 1 and VerdictKind.UNKNOWN not in kinds:
        same = alone[middle.rank]
        sentence = f"All {counted(len(alone), 'rank')} have this verdict. On rank {middle.rank}: {same.sentence}"
        return Verdict(same.kind, sentence, same.caveats)
    limit = "GPUs" if on_gpu else "processors"
    if computing >= 0.5:
        return Verdict(VerdictKind.COMPUTE, f"The {limit} are the limit: {numbers}.", ())
    waits = "its GPU waits for" if on_gpu else "it does the rest of the time"
    hint = f"`torchwhy explain` on the trace of one rank shows what {waits}"
    return Verdict(VerdictKind.UNKNOWN, f"Can't tell from the ranks together: {numbers}; {hint}.", ())
