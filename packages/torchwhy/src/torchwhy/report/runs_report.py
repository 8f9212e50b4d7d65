"""The report on many runs: of each what its job's report begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchwhy.analysis.verdict import Verdict
from torchwhy.finding import Finding
from torchwhy.ranks.job import Job
from torchwhy.report.job_report import Rank, describe_job

__all__ = ["Run", "describe_run"]


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
