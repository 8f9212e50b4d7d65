"""A recording that is asked several questions: it is read once, and the rules look once."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from torchwhy.device_peaks import peaks_of
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.finding import Finding
from torchwhy.loading.job import LoadedJob, load_job
from torchwhy.loading.kept import FOLDER as KEPT
from torchwhy.loading.runs import load_runs
from torchwhy.loading.trace import LoadedTrace, load
from torchwhy.present.document import Document
from torchwhy.present.explanation import explanation
from torchwhy.present.job_explanation import job_explanation
from torchwhy.present.runs_explanation import standing_out
from torchwhy.pyproject import find_pyproject
from torchwhy.ranks.folder import find_traces, runs_in, single_trace
from torchwhy.report.job_report import describe_job
from torchwhy.report.runs_report import RunsReport, describe_run, describe_runs
from torchwhy.report.trace_report import TraceReport, describe
from torchwhy.rules.diagnose import Diagnosis, diagnose
from torchwhy.rules.settings import Settings, chosen, settings_from
from torchwhy.trace.file.remote import path_of

__all__ = [
    "OpenJob",
    "OpenRuns",
    "OpenTrace",
    "Recording",
    "Recordings",
    "found_by_id",
    "one_run",
    "open_recording",
    "trace_of",
]

_SHOWN: Final = 30
"""Ids in an error's message."""


class OpenTrace:
    """One trace.

    Attributes:
        path: of the file.
        trace: what was read.
        settings: which rules to ask, and with which thresholds.
    """

    def __init__(self, path: str, settings: Settings, steps: str | None = None, capture: str | None = None) -> None:
        self.path = path
        self.settings = settings
        self.trace: LoadedTrace = load(path, steps=steps, capture=capture)
        self.trace.given_peaks = peaks_of(self.trace)

    @property
    def size(self) -> int:
        """Bytes of the decompressed file."""
        return self.trace.size

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The rules' findings."""
        return diagnose(self.trace, rules=chosen(self.settings), thresholds=self.settings.thresholds)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The most time at stake first."""
        return self.diagnosis.findings

    @cached_property
    def report(self) -> TraceReport:
        """Everything there is to say."""
        return describe(self.trace, self.diagnosis)

    @cached_property
    def explained(self) -> Document:
        """The report as a document."""
        return explanation(self.report)


class OpenJob:
    """The traces of several ranks.

    Attributes:
        path: of the folder.
        job: what was read.
        settings: which rules to ask, and with which thresholds.
        keep: whether to keep the summaries of ranks, as for `load_job`.
    """

    def __init__(self, path: str, settings: Settings, keep: bool | None = None) -> None:
        self.path = path
        self.settings = settings
        self.job: LoadedJob = load_job(path, thresholds=settings.thresholds, keep=keep)

    @property
    def size(self) -> int:
        """Bytes; summaries of ranks are small."""
        return 0

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The most time at stake first."""
        codes = self._codes
        return self.job.diagnose(codes) if codes else ()

    @cached_property
    def _codes(self) -> tuple[str, ...]:
        return tuple(rule.code for rule in chosen(self.settings))

    @cached_property
    def explained(self) -> Document:
        """The report as a document."""
        return job_explanation(describe_job(self.job, self.findings, self._codes))


class OpenRuns:
    """The jobs of a folder of several runs.

    Attributes:
        path: of the folder.
        runs: the folders of the runs by name.
        settings: which rules to ask, and with which thresholds.
        keep: whether to keep the summaries of ranks, as for `load_job`.
        size: 0; what is kept of a run is small.
    """

    size = 0

    def __init__(self, path: str, runs: dict[str, Path], settings: Settings, keep: bool | None = None) -> None:
        self.path = path
        self.runs = runs
        self.settings = settings
        self.keep = keep

    @cached_property
    def report(self) -> RunsReport:
        """Which runs stand out; all are read for it."""
        codes = tuple(rule.code for rule in chosen(self.settings))
        found = [
            describe_run(name, job, job.diagnose(codes) if codes else ())
            for name, job in load_runs(self.runs, thresholds=self.settings.thresholds, keep=self.keep)
            if not isinstance(job, str)
        ]
        return describe_runs(self.path, found, sorted(self.runs.keys() - {run.name for run in found}))

    @cached_property
    def explained(self) -> Document:
        """The report as a document."""
        return standing_out(self.report)


Recording: TypeAlias = OpenTrace | OpenJob


def open_recording(
    path: str, steps: str | None = None, capture: str | None = None, keep: bool | None = None
) -> Recording | OpenRuns:
    """Read a trace, the trace in a folder, the traces of all ranks in one, or of several runs.

    Rules are set as pyproject.toml says.

    Raises:
        ArgumentError: `steps` or `capture` is given for the ranks of a job, or for several runs.
        TraceError: it cannot be read.
    """
    settings = settings_from(find_pyproject(Path.cwd()))
    runs = runs_in(path)
    if runs:
        if steps or capture:
            raise ArgumentError(f"steps and capture are about one trace, and {path} holds several runs")
        return OpenRuns(path, runs, settings, keep)
    folder = path_of(path)
    if path != "-" and folder.is_dir():
        single = single_trace(folder)
        if single is None:
            if steps or capture:
                raise ArgumentError(f"steps and capture are about one trace, and {path} holds traces of several ranks")
            return OpenJob(path, settings, keep)
        path = str(single)
    return OpenTrace(path, settings, steps, capture)


def trace_of(recording: Recording, what: str) -> OpenTrace:
    """Return a recording that is one trace.

    Raises:
        ArgumentError: it is a job; the message names one of its traces.
    """
    if isinstance(recording, OpenTrace):
        return recording
    one = find_traces(path_of(recording.path)).traces[0]
    raise ArgumentError(f"{what} is about one trace, and {recording.path} holds traces of several ranks; ask {one}")


def one_run(recording: Recording | OpenRuns, what: str) -> Recording:
    """Return a recording that is of one run.

    Raises:
        ArgumentError: it is of several; the message names one of them.
    """
    if isinstance(recording, OpenRuns):
        one = next(iter(recording.runs.values()))
        raise ArgumentError(f"{what} is about one run, and {recording.path} holds several runs; ask {one}")
    return recording


def found_by_id(recording: Recording, wanted: str) -> Finding:
    """Return the finding with an id; a rule's code or name will do where the rule has one finding only.

    Raises:
        ArgumentError: the recording has no such finding.
    """
    findings = recording.findings
    for found in ([f for f in findings if f.id == wanted], [f for f in findings if wanted in (f.code, f.slug)]):
        if len(found) == 1:
            return found[0]
    ids = [finding.id for finding in findings]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    known = f"it has {', '.join(ids[:_SHOWN])}{more}" if ids else "it has no findings"
    raise ArgumentError(f"ID must be that of a finding of {Path(recording.path).name}, got {wanted[:40]!r}: {known}")


class Recordings:
    """Recordings kept open, so that the second question is answered at once; the one asked least lately is let go.

    Args:
        most: how many are kept.
        most_bytes: how much their decompressed files have together; one alone may have more.
        keep: whether to keep the summaries of ranks in files, as for `load_job`.
    """

    def __init__(self, most: int = 8, most_bytes: int = 2 * 10**9, keep: bool | None = None) -> None:
        self._most, self._keep = most, keep
        self._most_bytes = most_bytes
        self._open: OrderedDict[tuple[object, ...], Recording | OpenRuns] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, path: str, steps: str | None = None, capture: str | None = None) -> Recording | OpenRuns:
        """Return the recording, read again where the file has changed.

        Raises:
            ArgumentError, TraceError: as `open_recording`.
        """
        key = (path, steps, capture, *(_state(path_of(each)) for each in (path, capture) if each))
        if key not in self._open:
            self._open[key] = open_recording(path, steps, capture, self._keep)
        self._open.move_to_end(key)
        while len(self._open) > 1 and (len(self._open) > self._most or self._bytes > self._most_bytes):
            self._open.popitem(last=False)
        return self._open[key]

    @property
    def _bytes(self) -> int:
        return sum(each.size for each in self._open.values())


def _state(path: Path) -> tuple[tuple[str, int, int], ...]:
    """By which a file, or those of a folder, are known to be as they were."""
    if path == Path("-"):  # standard input is read once
        return ()
    try:
        files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        files = [each for each in files if each.parent.name != KEPT]
        return tuple((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in files)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from error
