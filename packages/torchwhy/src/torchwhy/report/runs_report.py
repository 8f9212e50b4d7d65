"""The report on many runs: of each what its job's report begins with, and which of them stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median
from typing import Final

import msgspec

from torchwhy.analysis.names import VerdictKind
from torchwhy.analysis.verdict import Verdict
from torchwhy.finding import Finding
from torchwhy.ranks.job import Job
from torchwhy.report.job_report import Rank, describe_job
from torchwhy.schema import SCHEMA
from torchwhy.wording import digits, percent

__all__ = ["FEWEST", "SHARES", "Run", "RunApart", "RunsReport", "describe_run", "describe_runs", "shares_of"]

SHARES: Final = ("computes", "transfers", "waits", "idle")
"""The parts of a rank's window."""

_VERBS: Final = ("computes for", "transfers for", "waits for other ranks for", "is idle for")
FEWEST: Final = 3
"""Runs whose median says what is usual."""

_RATIO: Final = 1.25
_SHARE: Final = 0.15
"""A step that is this much longer or shorter than the median run's, or a share this far from its share, stands out."""

_SPREADS: Final = 3.0
"""It must also be this many median deviations away: runs of different programs differ all."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: its folder's name below the folder of all runs.
        events: of all its traces.
        ranks: the rows of `Job.ranks`.
        unreadable: traces that could not be read.
        verdict: what limits it.
        findings: rule, "C5 launch-gap", and title of each, the most time at stake first.
    """

    name: str
    events: int
    ranks: tuple[Rank, ...]
    unreadable: int
    verdict: Verdict
    findings: tuple[tuple[str, str], ...]

    @property
    def step_us(self) -> float | None:
        """The median of the ranks' medians; None without steps."""
        steps = [rank.step_us for rank in self.ranks if rank.step_us is not None]
        return median(steps) if steps else None

    @property
    def shares(self) -> tuple[float, ...]:
        """The means of the ranks' shares, in the order of `SHARES`."""
        return tuple(map(fmean, zip(*map(shares_of, self.ranks), strict=True)))


class RunApart(msgspec.Struct, frozen=True):
    """A run that stands out.

    Attributes:
        name: of the run.
        step_us: its step.
        limit: what limits it.
        reasons: in what it differs from the other runs, the most important first.
    """

    name: str
    step_us: float | None
    limit: VerdictKind
    reasons: tuple[str, ...]


class RunsReport(msgspec.Struct, frozen=True):
    """The report on a folder of runs; `unreadable` names runs, `apart` are those that stand out, the farthest first."""

    schema: int
    folder: str
    unreadable: tuple[str, ...]
    apart: tuple[RunApart, ...]
    runs: tuple[Run, ...]


def shares_of(rank: Rank) -> tuple[float, ...]:
    """Return the shares of a rank's window, in the order of `SHARES`."""
    waits = min(rank.waited_us, rank.exposed_us)
    return tuple(map(rank.share, (rank.compute_us, rank.exposed_us - waits, waits, rank.window_us - rank.busy_us)))


def describe_run(name: str, job: Job, findings: Sequence[Finding]) -> Run:
    """Return what is kept of a run's job.

    Args:
        name: of the run.
        job: what was read.
        findings: what the rules found in it.
    """
    report = describe_job(job, findings)
    named = tuple((f"{one.code} {one.slug}", one.title) for one in report.findings if one.severity != "info")
    return Run(name, report.trace.events, report.ranks, len(report.unreadable), report.verdict, named)


def describe_runs(folder: str, runs: Sequence[Run], unreadable: Sequence[str]) -> RunsReport:
    """Return the report on a folder.

    Args:
        folder: with the folders of all runs.
        runs: what was read.
        unreadable: names of runs that could not be read.
    """
    return RunsReport(SCHEMA, folder, tuple(unreadable), _apart(runs), tuple(runs))


def _apart(runs: Sequence[Run]) -> tuple[RunApart, ...]:
    """The runs that differ from most, by the size of the difference in their steps or shares."""
    if len(runs) < FEWEST:
        return ()
    [(usual, number)] = Counter(run.verdict.kind for run in runs).most_common(1)
    steps = [log(run.step_us) if run.step_us else None for run in runs]
    step, far = _far(steps, log(_RATIO))
    shares = [_far([run.shares[i] for run in runs], _SHARE) for i in range(len(SHARES))]
    found = []
    for i, run in enumerate(runs):
        reasons, size = [], 0.0
        if i in far and run.step_us:
            size = abs(log(run.step_us) - step)
            reasons.append(f"a step takes {digits(run.step_us / exp(step))} times the median run's")
        for verb, share, (middle, others) in zip(_VERBS, run.shares, shares, strict=True):
            if i in others:
                size = max(size, abs(share - middle))
                reasons.append(f"{verb} {percent(share)} of the time, the median run {percent(middle)}")
        if run.verdict.kind not in (usual, VerdictKind.UNKNOWN) and 2 * number > len(runs):
            reasons.append(f"{run.verdict.kind.label}, most runs are {usual.label}")
        if reasons:
            found.append((size, RunApart(run.name, run.step_us, run.verdict.kind, tuple(reasons))))
    return tuple(one for _, one in sorted(found, key=lambda item: -item[0]))


def _far(values: Sequence[float | None], limit: float) -> tuple[float, frozenset[int]]:
    """The median, and the places of the values that are farther from it than a limit and than most are."""
    known = [value for value in values if value is not None]
    if len(known) < FEWEST:
        return 0.0, frozenset()
    middle = median(known)
    limit = max(limit, _SPREADS * median(abs(value - middle) for value in known))
    return middle, frozenset(i for i, value in enumerate(values) if value is not None and abs(value - middle) > limit)
