"""Load all ranks of a program: `torchwhy.load_job`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from torchwhy.errors import TraceError
from torchwhy.finding import Finding, identified
from torchwhy.loading.kept import KeptSummaries
from torchwhy.loading.workers import SMALL, Readers, Thresholds, check_engine, read_all, size_of
from torchwhy.ranks.findings import merged_findings
from torchwhy.ranks.folder import find_traces
from torchwhy.ranks.job import Job
from torchwhy.ranks.summary import Summary
from torchwhy.rules.catalogue import chosen_rules, thresholds_by_slug
from torchwhy.rules.diagnose import by_weight, look, turn
from torchwhy.rules.rule import setting
from torchwhy.trace.file.remote import path_of

__all__ = ["ALONE", "LoadedJob", "load_job"]

ALONE: Final = ("exposed-comm", "cpu-exposed-comm")
"""Rules on one rank that take waiting and transfer together; rules on jobs separate them."""


class LoadedJob(Job):
    """The loaded traces of all ranks of a job.

    Attributes:
        thresholds: the thresholds of the rules on single traces.
    """

    thresholds: Thresholds | None = None

    def diagnose(
        self,
        select: str | Iterable[str] = (),
        ignore: str | Iterable[str] = (),
        thresholds: Thresholds | None = None,
    ) -> tuple[Finding, ...]:
        """Return the findings in the job and its ranks, sorted by time at stake.

        Args:
            select: codes, names or families ("F") of rules; empty: all.
            ignore: rules to skip.
            thresholds: thresholds of rules on jobs; `load_job` takes those of rules on single traces.

        Raises:
            ArgumentError: a rule or threshold is unknown.
        """
        rules = chosen_rules(select, ignore)
        codes = {rule.code for rule in rules}
        given = thresholds_by_slug(thresholds or self.thresholds)
        alone = ALONE if self.compared else ()
        findings = [f for f in merged_findings(self.summaries, self.numbers, alone) if f.code in codes]
        with setting(given):
            for rule in (rule for rule in rules if rule.on == "job"):
                found, error = look(rule, self, None)
                findings += found
                if error:
                    self.failed[rule.code] = error
        # If both cost about the same, findings that delay all ranks come before findings in one rank.
        of_job = {rule.code for rule in rules if rule.on == "job"}
        by_cost = sorted(by_weight(findings), key=lambda f: (turn(f), -_rounded(f.time_us), f.code not in of_job))
        return identified(by_cost)

    def _repr_html_(self) -> str:
        """Return what `torchwhy explain` says, for notebooks."""
        from torchwhy.present.formats import render
        from torchwhy.present.job_explanation import job_explanation
        from torchwhy.report.job_report import describe_job

        asked = tuple(rule.code for rule in chosen_rules((), ()))
        return render(job_explanation(describe_job(self, self.diagnose(), asked)), "html")


def load_job(
    folder: str | os.PathLike[str],
    ranks: Iterable[int] | None = None,
    workers: int | None = None,
    *,
    thresholds: Thresholds | None = None,
    engine: str = "processes",
    keep: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
    readers: Readers | None = None,
) -> LoadedJob:
    """Read the traces of all ranks of a program, in separate processes, and keep a summary of each.

    The summaries are kept in files, too, so that a job whose reading was stopped continues, and a job that was read is
    read again at once. A trace that has changed is read again. One that cannot be read is left out (`unreadable`).

        job = torchwhy.load_job("traces/run")
        job.stragglers(), job.diagnose()

    Args:
        folder: a folder with one trace or one folder per rank; also a URL such as s3://bucket/run (extra `urls`).
        ranks: ranks to read; None: all.
        workers: number of traces to read in parallel, which limits the memory; None: the number of processors.
        thresholds: thresholds of rules, by rule, then by name.
        engine: "processes" of this machine, or "ray" (extra `ray`): tasks on the cluster that RAY_ADDRESS names, whose
            machines all see the folder, or on this machine.
        keep: whether to keep the summaries, in the folder `.torchwhy` within `folder` (of a URL in the user's cache),
            and to use those kept there; None: if the traces have more than 8 MB together.
        progress: called with the number of finished traces and the number of all, again and again.
        readers: processes for several calls, with `engine` "processes"; None starts them as needed.

    Raises:
        TraceError: the folder does not exist, or no trace in it can be read.
        ArgumentError: a rule, threshold or engine is unknown, or `workers` is below 1.
        MissingPackageError: the engine is "ray", which is not installed.
    """
    thresholds_by_slug(thresholds)  # a wrong one is an error here, not in each of the processes
    check_engine(engine, workers)
    place = path_of(folder)
    wanted = None if ranks is None else frozenset(ranks)
    found = find_traces(place)
    if keep is None:
        keep = sum(map(size_of, found.traces)) > SMALL
    kept = KeptSummaries(place, thresholds) if keep else None
    known = {path: kept.of(path) for path in found.traces} if kept is not None else {}
    summaries = [summary for summary in known.values() if summary is not None]
    unreadable: dict[str, str] = {}
    missing = [path for path in found.traces if known.get(path) is None]
    for path, summary in read_all(missing, workers, thresholds, engine, readers):
        if isinstance(summary, str):
            unreadable[str(path.relative_to(place))] = summary
        else:
            summaries.append(summary)
            kept = _keep(kept, path, summary)
        if progress is not None:
            progress(len(summaries) + len(unreadable), len(found.traces))
    if not summaries:
        reasons = "; ".join(sorted(unreadable.values())[:3])
        raise TraceError(f"{folder} has no readable trace: {reasons}")
    job = LoadedJob(str(folder), summaries, unreadable, [str(path.relative_to(place)) for path in found.others], wanted)
    job.thresholds = thresholds
    if not len(job):
        raise TraceError(f"{folder} has no trace of ranks {', '.join(map(str, sorted(wanted or ())))}")
    return job


def _keep(kept: KeptSummaries | None, path: Path, summary: Summary) -> KeptSummaries | None:
    """Keep a summary; return where to keep the next one: nowhere once a file cannot be written."""
    if kept is not None:
        try:
            kept.keep(path, summary)
        except OSError as error:
            warnings.warn(
                f"summaries of ranks are not kept, since {error.filename} cannot be written: "
                f"{error.strerror or error}; if reading is stopped, it starts over",
                stacklevel=3,
            )
            return None
    return kept


def _rounded(time_us: float) -> float:
    """A time with two digits: what differs by less is about the same."""
    return float(f"{time_us:.1e}")
