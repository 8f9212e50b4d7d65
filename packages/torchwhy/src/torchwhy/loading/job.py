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
from torchwhy.loading.workers import SMALL, Thresholds, check_engine, readers, size_of
from torchwhy.ranks.findings import merged_findings
from torchwhy.ranks.folder import find_traces
from torchwhy.ranks.job import Job
from torchwhy.ranks.summary import Summary
from torchwhy.rules.catalogue import chosen_rules, thresholds_by_slug
from torchwhy.rules.diagnose import by_weight, look, turn
from torchwhy.rules.rule import setting
from torchwhy.trace.file.remote import path_of

__all__ = ["ALONE", "LoadedJob", "PendingJob", "load_job"]

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

    Raises:
        TraceError: the folder does not exist, or no trace in it can be read.
        ArgumentError: a rule, threshold or engine is unknown, or `workers` is below 1.
        MissingPackageError: the engine is "ray", which is not installed.
    """
    thresholds_by_slug(thresholds)  # a wrong one is an error here, not in each of the processes
    check_engine(engine, workers)
    wanted = None if ranks is None else frozenset(ranks)
    pending = PendingJob(path_of(folder), thresholds, keep)
    size = sum(map(size_of, pending.missing))
    with readers(len(pending.missing), size, workers, thresholds, engine) as reading:
        for path, summary in reading.read(pending.missing):
            pending.add(path, summary)
            if progress is not None:
                progress(pending.done, pending.all)
    return pending.job(str(folder), wanted)


class PendingJob:
    """A job whose traces are being read.

    Args:
        folder: of the job.
        thresholds: of the rules on single traces.
        keep: as for `load_job`.

    Attributes:
        missing: the traces that have to be read, the largest first; the summaries of the others were kept.

    Raises:
        TraceError: as `find_traces`.
    """

    def __init__(self, folder: Path, thresholds: Thresholds | None, keep: bool | None) -> None:
        self._folder = folder
        self._thresholds = thresholds
        self._found = find_traces(folder)
        sizes = {path: size_of(path) for path in self._found.traces}
        if keep is None:
            keep = sum(sizes.values()) > SMALL
        self._kept = KeptSummaries(folder, thresholds) if keep else None
        known = {path: self._kept.of(path) for path in sizes} if self._kept is not None else {}
        self._summaries = [summary for summary in known.values() if summary is not None]
        self._unreadable: dict[str, str] = {}
        self.missing = sorted((path for path in sizes if known.get(path) is None), key=lambda path: -sizes[path])

    @property
    def all(self) -> int:
        """The number of its traces."""
        return len(self._found.traces)

    @property
    def done(self) -> int:
        """The number of traces that are read, or cannot be."""
        return len(self._summaries) + len(self._unreadable)

    def add(self, path: Path, summary: Summary | str) -> None:
        """Take the summary of a trace, which is kept in a file, or the reason for its absence."""
        if isinstance(summary, str):
            self._unreadable[self._name(path)] = summary
            return
        self._summaries.append(summary)
        if self._kept is not None:
            try:
                self._kept.keep(path, summary)
            except OSError as error:
                self._kept = None
                warnings.warn(
                    f"summaries of ranks are not kept, since {error.filename} cannot be written: "
                    f"{error.strerror or error}; if reading is stopped, it starts over",
                    stacklevel=3,
                )

    def job(self, name: str, ranks: frozenset[int] | None = None) -> LoadedJob:
        """Return the job of the traces that were read.

        Args:
            name: of its folder, as given.
            ranks: the requested ones; None: all.

        Raises:
            TraceError: there is not one, or not one of these ranks.
        """
        if not self._summaries:
            reasons = "; ".join(sorted(self._unreadable.values())[:3])
            raise TraceError(f"{name} has no readable trace: {reasons}")
        job = LoadedJob(name, self._summaries, self._unreadable, [*map(self._name, self._found.others)], ranks)
        job.thresholds = self._thresholds
        if not len(job):
            raise TraceError(f"{name} has no trace of ranks {', '.join(map(str, sorted(ranks or ())))}")
        return job

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._folder))


def _rounded(time_us: float) -> float:
    """A time with two digits: what differs by less is about the same."""
    return float(f"{time_us:.1e}")
