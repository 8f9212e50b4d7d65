"""The reports of `torchwhy explain` and `torchwhy profile` on a trace, as documents."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from torchwhy.analysis.breakdown import Breakdown, Part, Spread
from torchwhy.analysis.names import Group, PartName, VerdictKind
from torchwhy.analysis.recording import DeviceTimes, TraceFile, WindowTimes
from torchwhy.analysis.verdict import Verdict
from torchwhy.present import document as blocks
from torchwhy.present.device_counters import activity_lines, counter_table, energy_lines
from torchwhy.present.document import Bar, Bars, Caveat, Document, Facts, Findings, Look, Table, Text
from torchwhy.present.findings import finding_item, nothing_found, rule_outcomes
from torchwhy.present.hotspots import (
    by_kind,
    by_label,
    call_tree_table,
    communication_table,
    compilation_table,
    computing_table,
    costly_lines_block,
    critical_path_table,
    memory_lines,
    module_table,
    phase_table,
    run_lines,
)
from torchwhy.report.trace_report import TraceReport
from torchwhy.wording import counted, duration, enumeration, percent

__all__ = ["CALL_FOR_RULES", "explanation", "short_explanation", "verdict_block"]

CALL_FOR_RULES: Final = Text("torchwhy rule CODE explains a rule and its thresholds.", look="dim")

_SLIVER: Final = 0.001
"""Parts below this share of the window belong to the full view."""

_MATTERS: Final = 0.3
"""If the device computes for at least this share of the window, its work belongs to the short view."""

_DIFFERENT: Final = 0.1
"""Two shares of idle time are both reported if they differ by at least this."""

_GROUPS: Final = {Group.GPU: "GPU", Group.IDLE: "GPU idle while the host", Group.HOST: "Program"}
_VERDICT_LOOKS: Final[dict[VerdictKind, Look]] = {VerdictKind.COMPUTE: "good", VerdictKind.UNKNOWN: "warning"}
_LOOKS: Final[dict[PartName, Look]] = {
    PartName.COMPUTING: "good",
    PartName.OPERATORS: "good",
    PartName.BACKWARD: "good",
    PartName.OPTIMIZER: "good",
    PartName.PROFILER: "dim",
    PartName.ENDED: "dim",
    PartName.COMMUNICATION: "warning",
    PartName.COPIES: "warning",
}
"""Colours of parts; the other colours mean bad."""


def explanation(report: TraceReport) -> Document:
    """Return everything: recording, verdict, where the time went, findings, rules."""
    trace, once = report.trace, any(one.once for one in report.findings)
    findings = Findings(
        tuple(
            finding_item(one, report.window.start_us, number=i, window=report.window.name)
            for i, one in enumerate(report.findings)
        ),
        _nothing(report),
        "Findings, the most time at stake first" + (", what happens once last" if once else ""),
    )
    asks, lines = _asks_for_change(report), _lines(report)
    return Document(
        trace.name,
        (
            *(Caveat("Repaired", repair.sentence) for repair in trace.repairs),
            verdict_block(report.verdict),
            bars(report.breakdown, () if report.window.unshown_us else report.gpu),
            *phase_table(report.phases),
            *by_kind(
                report.kinds,
                "always" if report.breakdown.share(PartName.COMPUTING) >= _MATTERS else "full",
                with_shapes="record_shapes" in trace.recorded,
            ),
            *activity_lines(report.activity),
            *energy_lines(report.energy),
            *by_label(report.labels, report.window.duration_us),
            *memory_lines(report.memory),
            *run_lines(report.run),
            *(() if asks else lines),
            findings,
            *(lines if asks else ()),
            *_computing(report),
            *counter_table(report.counters),
            *communication_table(report.communication, report.window.duration_us),
            *call_tree_table(report.call_tree or (), report.window.duration_us),
            *module_table(report.modules or (), report.labels),
            *critical_path_table(report.critical_path or ()),
            *compilation_table(report.compiler),
            rule_outcomes(report.ran, report.muted, report.failed),
            *((CALL_FOR_RULES,) if report.findings else ()),
        ),
        report,
        _about(trace, report.window, report.gpu),
        "explain",
        trace.file,
    )


def short_explanation(report: TraceReport) -> Document:
    """Return the report in short: verdict, where the time went, labels, memory, and each finding with its fix."""
    items = tuple(finding_item(finding, report.window.start_us, brief=True) for finding in report.findings)
    asks, lines = _asks_for_change(report), _lines(report)
    return Document(
        "",
        (
            verdict_block(replace(report.verdict, caveats=())),
            bars(report.breakdown, () if report.window.unshown_us else report.gpu),
            *phase_table(report.phases),
            *activity_lines(report.activity),
            *energy_lines(report.energy),
            *by_label(report.labels, report.window.duration_us),
            *memory_lines(report.memory),
            *run_lines(report.run),
            *(() if asks else lines),
            Findings(items, _nothing(report), brief=True),
            *(lines if asks else ()),
        ),
        report,
        command="profile",
        file=report.trace.file,
    )


def _computing(report: TraceReport) -> tuple[Table, ...]:
    """What computes, where that is the limit and no finding says more."""
    wanted = report.verdict.kind == VerdictKind.COMPUTE and not _asks_for_change(report) and not report.lines
    return computing_table(report.operators, on_gpu=report.breakdown.of == "gpu") if wanted else ()


def _asks_for_change(report: TraceReport) -> bool:
    return any(finding.severity != "info" for finding in report.findings)


def _lines(report: TraceReport) -> tuple[Facts, ...]:
    """Where in the program time passes; below findings the short view has room for the first line."""
    steps, on_gpu = report.breakdown.steps, report.breakdown.of == "gpu"
    if not _asks_for_change(report):
        return costly_lines_block(report.lines, steps, on_gpu=on_gpu)
    return (
        *costly_lines_block(report.lines[:1], steps, "short", on_gpu=on_gpu),
        *costly_lines_block(report.lines, steps, "full", on_gpu=on_gpu),
    )


def _nothing(report: TraceReport) -> str:
    return nothing_found(report.verdict.kind, len(report.ran), with_stacks="with_stack" in report.trace.recorded)


def verdict_block(verdict: Verdict) -> blocks.VerdictBlock:
    """Return the verdict as a document has it."""
    look: Look = _VERDICT_LOOKS.get(verdict.kind, "bad")
    return blocks.VerdictBlock(verdict.kind.label, verdict.sentence, verdict.caveats, look)


def bars(parts: Breakdown, devices: tuple[DeviceTimes, ...] = ()) -> Bars:
    """Return the breakdown of the window as bars, with the spread over steps."""
    rows: list[Bar] = []
    for group, label in _GROUPS.items():
        members = [part for part in parts.parts if part.group == group]
        if members:
            rows.append(_sum(label, members) if group == Group.IDLE else Bar(label, depth=0))
            rows += [_bar(part, steps=parts.step is not None) for part in members]
    step = parts.step
    return Bars(
        f"Where the time goes ({duration(parts.window_us)})",
        tuple(rows),
        "per step (range)" if step else "",
        ("a step, on the host", _spread(step)) if step else ("", ""),
        _idle_between(parts, devices),
    )


def _sum(label: str, members: list[Part]) -> Bar:
    share, time_us = sum(part.share for part in members), sum(part.time_us for part in members)
    return Bar(label, share, percent(share), duration(time_us), depth=0)


def _bar(part: Part, *, steps: bool) -> Bar:
    return Bar(
        part.label,
        part.share,
        percent(part.share),
        duration(part.time_us),
        _spread(part.per_step) if steps else "",
        _LOOKS.get(part.name, "bad"),
        target=f"part:{part.name}",
        when="always" if part.share >= _SLIVER or part.name == PartName.COMPUTING else "full",
    )


def _spread(values: Spread | None) -> str:
    if not values or not values.high_us:  # all of it lies after the steps
        return ""
    low, high = duration(values.low_us), duration(values.high_us)
    if low.split()[-1] == high.split()[-1]:
        low = low.split()[0]
    return f"{duration(values.median_us):>8} ({low}\u2013{high})"


def _idle_between(parts: Breakdown, devices: tuple[DeviceTimes, ...]) -> tuple[str, ...]:
    """Idle time is another matter between the first and the last piece of work: say so where the two differ much."""
    idle = sum(part.share for part in parts.parts if part.group == Group.IDLE)
    if len(devices) != 1 or not devices[0].idle_us:  # with one piece of work there is nothing between
        return ()
    own = devices[0].idle_us / devices[0].span_us
    if abs(idle - own) < _DIFFERENT:
        return ()
    return (
        f"In the whole recording, from its first to its last work ({duration(devices[0].span_us)}), the GPU is idle "
        f"{percent(own)} of the time.",
    )


_RECORDED: Final = {
    "record_shapes": "shapes",
    "with_stack": "stacks",
    "profile_memory": "memory",
    "with_flops": "FLOPs",
    "with_modules": "modules",
}


def _about(trace: TraceFile, window: WindowTimes, devices: tuple[DeviceTimes, ...]) -> tuple[str, ...]:
    """Return lines on a recording: which device, how much was recorded, which stretch of time."""
    where = [_devices(trace, devices)]
    if trace.rank is not None:
        where.append(f"rank {trace.rank}" + (f" of {trace.world_size}" if trace.world_size else ""))
    where.append(counted(trace.events, "event"))
    where += [f"recorded by {trace.recorder}"] if trace.recorder else []
    recorded = [_RECORDED.get(flag, flag) for flag in trace.recorded]
    where += [f"recorded with {enumeration(recorded)}"] if recorded else []
    return " \u00b7 ".join(where), f"Window: {_window(window)}"


def _devices(trace: TraceFile, used: tuple[DeviceTimes, ...]) -> str:
    known = {device.id for device in trace.devices}
    if not used:
        return "no GPU work"
    unnamed = {"amd": "AMD GPU", "nvidia": "NVIDIA GPU"}.get(trace.vendor, "GPU without a name")
    shown = sorted({entry.name or unnamed for entry in used})
    if len(used) > 1:
        return f"{len(used)} GPUs: {enumeration(shown)}"
    number = used[0].device
    if known and number not in known:  # the file's list has another number for it
        return f"{shown[0]} (numbered {number} in the trace)"
    others = f", 1 of {len(known)} used" if len(known) > 1 else ""
    return f"{shown[0]} (GPU {number}{others})"


def _window(window: WindowTimes) -> str:
    length, steps = duration(window.duration_us), window.steps
    if not steps:
        return f"{window.name}, {length}; no steps are marked"
    if window.inferred:
        mark = steps[0].mark
        how = f"from one {mark} to the next" if steps[0].between else f"of {mark}"
        return f"{counted(len(steps), 'step')} {how}, as inferred, {length}"
    names = [step.label for step in steps]
    which = f"step {names[0]}" if len(steps) == 1 else f"{len(steps)} steps, {names[0]} to {names[-1]}"
    them = "it" if len(steps) == 1 else "them"
    return f"{which}, {length} with the GPU work begun in {them}" if window.gpu_span_us else f"{which}, {length}"
