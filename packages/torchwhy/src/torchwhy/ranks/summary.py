"""A summary of one rank's trace: some hundred bytes per collective and step, whatever the size of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from torchwhy.analysis.breakdown import breakdown
from torchwhy.analysis.recording import launches_of
from torchwhy.analysis.verdict import Verdict, verdict
from torchwhy.finding import Finding
from torchwhy.ranks.folder import named_rank
from torchwhy.trace.derived.collectives import MOST_RANKS, collectives_of, own_collectives
from torchwhy.trace.derived.cpu_communication import operators_computing
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace

__all__ = ["Exchanges", "Summary", "summary_of"]

_NO_ROWS: Final = np.empty(0, np.int32)


@dataclass(frozen=True)
class Exchanges:
    """The collectives of a rank's window as columns, by start.

    Attributes:
        names, libraries, groups: distinct kinds, libraries, and process groups (name and members as the trace writes
            them).
        name, library, group: indices into these.
        step: number of the step that launched each, or its position among the steps; -1 outside of them.
        seq: number within the group, -1 where the trace doesn't show it.
        start: nanoseconds on the rank's own clock.
        duration: nanoseconds, waiting included. exposed: the part in which the device computed nothing.
        bytes: as nccl-tests count; -1 unknown. size: ranks in the group; 0 unknown.
    """

    names: tuple[str, ...]
    libraries: tuple[str, ...]
    groups: tuple[str, ...]
    name: Int64
    library: Int64
    group: Int64
    step: Int64
    seq: Int64
    start: Int64
    duration: Int64
    exposed: Int64
    bytes: Int64
    size: Int64

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True)
class Summary:
    """One rank. Times are nanoseconds within its window.

    Attributes:
        file: path of the trace.
        rank: from the trace, or None. named: from the name of the file or its folder, or None.
        world_size, backend: from the trace.
        on_gpu: whether it recorded work of a GPU.
        device: name of the device, or "".
        events: in the file.
        truncated: whether the file ends too early.
        window: what the times are parts of.
        steps: names of the steps; the columns after it have one entry each.
        step_duration, step_compute: of each step, until its device work ends.
        busy, compute, communication, exposed: unions over streams. On the CPU operators compute.
        exchanges: its collectives.
        verdict: what limits this rank.
        findings: of the rules that look at one trace.
        failed: rules that broke off, by code: the error in a line.
        base_ns: what to add to the file's times to get nanoseconds since 1970.
    """

    file: str
    rank: int | None
    named: int | None
    world_size: int | None
    backend: str | None
    on_gpu: bool
    device: str
    events: int
    truncated: bool
    window: Window
    steps: tuple[str, ...]
    step_duration: Int64
    step_compute: Int64
    busy: int
    compute: int
    communication: int
    exposed: int
    exchanges: Exchanges
    verdict: Verdict
    findings: tuple[Finding, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    base_ns: int = 0

    @property
    def duration(self) -> int:
        """The length of the window."""
        return self.window.end - self.window.start


def summary_of(trace: Trace, findings: tuple[Finding, ...], failed: Mapping[str, str]) -> Summary:
    """Reduce a trace to its summary.

    Args:
        trace: of one rank.
        findings: what the rules found in it.
        failed: rules that broke off, by code.
    """
    window, steps = trace.window, trace.steps_found
    busy, compute, communication = _parts(trace)
    starts, ends = [step.start for step in steps], [step.device_end for step in steps]
    exposed = communication - compute

    def within(times: Intervals) -> int:
        return times.clip(window.start, window.end).total

    return Summary(
        file=trace.file,
        rank=_possible(trace.info.rank),
        named=_possible(named_rank(Path(trace.file))),
        world_size=trace.info.world_size,
        backend=trace.info.backend,
        on_gpu=trace.has_gpu,
        device=_device(trace),
        events=len(trace),
        truncated=trace.repairs.truncated or trace.repairs.truncated_gzip,
        window=window,
        steps=tuple(step.name for step in steps),
        step_duration=np.array(ends, np.int64) - np.array(starts, np.int64),
        step_compute=compute.overlap(starts, ends),
        busy=within(busy),
        compute=within(compute),
        communication=within(communication),
        exposed=within(exposed),
        exchanges=_exchanges(trace, exposed),
        verdict=verdict(trace, breakdown(trace), launches_of(trace), frozenset(finding.slug for finding in findings)),
        findings=tuple(map(_without_rows, findings)),
        failed=failed,
        base_ns=trace.info.base_ns,
    )


def _without_rows(finding: Finding) -> Finding:
    """A finding without its places in the trace, of which there may be as many as events."""
    return replace(finding, stretches=None, evidence=tuple(replace(one, rows=_NO_ROWS) for one in finding.evidence))


def _parts(trace: Trace) -> tuple[Intervals, Intervals, Intervals]:
    """Busy, computing and communicating: the device's, or without one the host's."""
    if trace.has_gpu:
        return trace.gpu.busy, trace.gpu.compute, trace.gpu.communication
    events, compute = trace.events, trace.derived(operators_computing)
    found = np.array([c.row for c in trace.derived(collectives_of)], np.int32)
    communication = events.times_of(found)
    return compute | communication, compute, communication


def _exchanges(trace: Trace, exposed: Intervals) -> Exchanges:
    found = trace.derived(own_collectives)
    names, name = _distinct([c.name for c in found])
    libraries, library = _distinct([c.library for c in found])
    groups, group = _distinct([f"{c.group} {c.members}".strip() for c in found])
    start = np.array([c.start for c in found], np.int64)
    duration = np.array([c.duration for c in found], np.int64)
    # The step is the one of the launch: the device may be a step behind.
    host = np.array([c.launch if c.launch >= 0 else c.row for c in found], np.int32)
    position = trace.step_of(host).astype(np.int64)
    numbers = np.array([s.number if s.number is not None else i for i, s in enumerate(trace.steps_found)], np.int64)
    step = np.where(position >= 0, numbers[position], -1) if len(numbers) else position
    return Exchanges(
        names,
        libraries,
        groups,
        name,
        library,
        group,
        step,
        np.array([c.seq for c in found], np.int64),
        start,
        duration,
        exposed.overlap(start, start + duration),
        np.array([c.bytes for c in found], np.int64),
        np.array([c.group_size for c in found], np.int64),
    )


def _distinct(texts: list[str]) -> tuple[tuple[str, ...], Int64]:
    known = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return tuple(known), np.array([known[text] for text in texts], np.int64)


def _device(trace: Trace) -> str:
    if not trace.has_gpu or not trace.info.devices:
        return ""
    return trace.info.device_name(trace.gpus[0].device) or trace.info.devices[0].name


def _possible(rank: int | None) -> int | None:
    return rank if rank is not None and 0 <= rank < MOST_RANKS else None
