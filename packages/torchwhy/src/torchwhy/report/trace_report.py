"""The report on a trace: what `torchwhy explain --format json` prints, and the source of every view of it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torchwhy.analysis.breakdown import LISTED, Breakdown, Stretch, breakdown, longest_of
from torchwhy.analysis.call_tree import TreeCall, call_tree
from torchwhy.analysis.compiler_log import CompilerLog, compiler_log
from torchwhy.analysis.costly_lines import CostlyLine, costly_lines
from torchwhy.analysis.critical_path import PathPart, critical_parts
from torchwhy.analysis.device_counters import (
    CounterTimes,
    EnergyUse,
    MeasuredActivity,
    activity,
    counter_times,
    energy,
)
from torchwhy.analysis.exchanges import ExchangeTimes, exchange_times
from torchwhy.analysis.hotspots import (
    KindTimes,
    LabelTime,
    ModuleTime,
    OperatorTime,
    kind_times,
    label_times,
    module_times,
    operator_times,
)
from torchwhy.analysis.memory_peak import MemoryPeak, memory_peaks
from torchwhy.analysis.phase_times import PhaseTimes, phase_times
from torchwhy.analysis.recording import (
    DeviceTimes,
    Launches,
    TraceFile,
    WindowTimes,
    devices_of,
    launches_of,
    trace_of,
    window_of,
)
from torchwhy.analysis.verdict import Verdict, verdict
from torchwhy.finding import Evidence, Finding
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.diagnose import Diagnosis
from torchwhy.schema import SCHEMA
from torchwhy.trace.derived.run_times import RunTimes, run_times
from torchwhy.trace.derived.stack_samples import recorded_samples
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.kernels import short_names

__all__ = [
    "FailedRule",
    "FindingEvidence",
    "FindingWindow",
    "MutedRule",
    "ReportedFinding",
    "TraceReport",
    "describe",
    "failed_rules",
    "reported",
]


class FindingWindow(msgspec.Struct, frozen=True):
    """The time that a finding's time is a part of, without one giant gap of `left_out_us`."""

    name: str
    start_us: float
    duration_us: float
    left_out_us: float = 0.0


class FindingEvidence(msgspec.Struct, frozen=True):
    """`torchwhy.finding.Evidence`, with the line of the program's own code ("" where it isn't known).

    `starts_us`: when its events begin, the longest 1,000 of them in order of time. `short_name`: of a kernel, as in
    `trace.kernels()`; "" for anything else. `own_source`: the source of the line in `own_code`, or else in `name`; ""
    where no sample of the stack shows that line.
    """

    name: str
    count: int
    time_us: float | None
    start_us: float | None
    where: str
    stack: tuple[str, ...]
    note: str
    own_code: str
    starts_us: tuple[float, ...] = ()
    short_name: str = ""
    own_source: str = ""


class ReportedFinding(msgspec.Struct, frozen=True):
    """`torchwhy.finding.Finding`; `cause_is` is "linked" by ids in the trace, or "inferred".

    `id` is the argument of `torchwhy finding` and similar commands.

    `stretches` are the longest 1,000 of `stretches_count`, in order of time.
    """

    code: str
    slug: str
    title: str
    severity: str
    confidence: str
    time_us: float
    window: FindingWindow
    evidence: tuple[FindingEvidence, ...]
    cause: str
    cause_is: str
    fix: str
    source: str
    once: bool = False
    stretches_count: int = 0
    stretches: tuple[Stretch, ...] = ()
    id: str = ""


class MutedRule(msgspec.Struct, frozen=True):
    """A rule that wasn't asked, and why."""

    code: str
    slug: str
    reason: str


class FailedRule(msgspec.Struct, frozen=True):
    """A rule that broke off, or what offers rules and could not be loaded (`slug` is ""), and the error."""

    code: str
    slug: str
    error: str


class TraceReport(msgspec.Struct, frozen=True):
    """Everything there is to say of a trace.

    Attributes:
        kinds: of device work, with what they reach of the device's peaks.
        operators: those that take the most time; lines: those of the program in which most of the time passes that no
            finding explains; labels: the program's own; memory: the peak of each device; communication: that of the
            window.
        ran: the rules that looked.
        modules, critical_path, call_tree: None unless they were requested.
        compiler: what the compiler's log says; None without one.
        phases: the rounds of an inference server; () for other programs.
        counters, activity, energy: what the counters of the devices say; () where they were not recorded.
        run: where the time of the whole run went; None where that isn't known.
    """

    schema: int
    trace: TraceFile
    window: WindowTimes
    gpu: tuple[DeviceTimes, ...]
    launches: Launches
    breakdown: Breakdown
    verdict: Verdict
    kinds: KindTimes
    operators: tuple[OperatorTime, ...]
    labels: tuple[LabelTime, ...]
    memory: tuple[MemoryPeak, ...]
    communication: tuple[ExchangeTimes, ...]
    findings: tuple[ReportedFinding, ...]
    muted: tuple[MutedRule, ...]
    failed: tuple[FailedRule, ...]
    ran: tuple[str, ...]
    lines: tuple[CostlyLine, ...] = ()
    modules: tuple[ModuleTime, ...] | None = None
    critical_path: tuple[PathPart, ...] | None = None
    call_tree: tuple[TreeCall, ...] | None = None
    compiler: CompilerLog | None = None
    phases: tuple[PhaseTimes, ...] = ()
    counters: tuple[CounterTimes, ...] = ()
    activity: tuple[MeasuredActivity, ...] = ()
    energy: tuple[EnergyUse, ...] = ()
    run: RunTimes | None = None


def describe(
    trace: Trace, diagnosis: Diagnosis, name: str = "", *, thorough: bool = False, price_per_kwh: float | None = None
) -> TraceReport:
    """Return everything there is to say of a trace.

    Args:
        trace: what was read.
        diagnosis: what the rules found in it.
        name: what to call it; the file's name where empty.
        thorough: modules, the critical path and the tree of calls too, which take long in large traces.
        price_per_kwh: of electricity, >= 0; None says nothing of money.

    Raises:
        ArgumentError: the price is negative.
    """
    launches, parts = launches_of(trace), breakdown(trace)
    slugs = frozenset(finding.slug for finding in diagnosis.findings)
    return TraceReport(
        SCHEMA,
        trace_of(trace, name),
        window_of(trace),
        devices_of(trace),
        launches,
        parts,
        verdict(trace, parts, launches, slugs),
        kind_times(trace),
        operator_times(trace),
        label_times(trace),
        memory_peaks(trace),
        exchange_times(trace),
        tuple(reported(finding, trace) for finding in diagnosis.findings),
        tuple(MutedRule(code, _slug(code), why) for code, why in diagnosis.muted.items()),
        failed_rules(diagnosis.failed),
        tuple(code for code in diagnosis.asked if code not in diagnosis.muted and code not in diagnosis.failed),
        costly_lines(trace, diagnosis.findings),
        module_times(trace) if thorough else None,
        critical_parts(trace) if thorough else None,
        call_tree(trace) if thorough else None,
        compiler_log(trace),
        phase_times(trace),
        counter_times(trace),
        activity(trace),
        energy(trace, price_per_kwh),
        run_times(trace),
    )


def failed_rules(failed: Mapping[str, str]) -> tuple[FailedRule, ...]:
    """Return the rules that broke off, by code with the error, as the report has them."""
    return tuple(FailedRule(code, _slug(code), why) for code, why in failed.items())


def _slug(code: str) -> str:
    return next((rule.slug for rule in all_rules() if rule.code == code), "")


def reported(finding: Finding, trace: Trace | None = None) -> ReportedFinding:
    """Return a finding as the report has it; `trace`: what it is about, None where that is a job."""
    window, when = finding.window, finding.stretches
    return ReportedFinding(
        code=finding.code,
        slug=finding.slug,
        title=finding.title,
        severity=finding.severity,
        confidence=finding.confidence,
        time_us=round(finding.time_us, 3),
        window=FindingWindow(window.name, window.start / 1000, window.us, round(finding.left_out_us, 3)),
        evidence=tuple(_evidence(item, trace) for item in finding.evidence),
        cause=finding.cause,
        cause_is="linked" if finding.linked else "inferred",
        fix=finding.fix,
        source=finding.source,
        once=finding.once,
        stretches_count=0 if when is None else len(when),
        stretches=() if when is None else longest_of(when),
        id=finding.id,
    )


def _evidence(item: Evidence, trace: Trace | None) -> FindingEvidence:
    own = own_frame(item.stack)
    return FindingEvidence(
        name=item.name,
        count=item.count,
        time_us=None if item.time_us is None else round(item.time_us, 3),
        start_us=item.start_us,
        where=item.where,
        stack=item.stack,
        note=item.note,
        own_code=own,
        starts_us=() if trace is None else _starts(item.rows, trace.events),
        short_name="" if trace is None else trace.derived(short_names).get(item.name, ""),
        own_source="" if trace is None else trace.derived(recorded_samples).lines.get(own or item.name, ""),
    )


def _starts(rows: Int32, events: Events) -> tuple[float, ...]:
    """When the longest of some rows begin, in order of time."""
    chosen = rows[np.argsort(-events.dur[rows], kind="stable")[:LISTED]]
    return tuple((np.sort(events.ts[chosen]) / 1000).tolist())
