"""The limit of the program, in a word and a sentence, or the reason why it is unknown."""

from __future__ import annotations

from typing import Final

import msgspec

from torchwhy.analysis.breakdown import Breakdown, Stretch, span_of
from torchwhy.analysis.caveats import FEW_KERNELS, caveats, long_step, slowed_by_stacks
from torchwhy.analysis.limits import LIMITS, MOST, STALL, amount_of, no_single_limit
from torchwhy.analysis.names import HOST_STALLS, PartName, VerdictKind
from torchwhy.analysis.processor_verdict import processor_verdict, set_up, unrecorded
from torchwhy.analysis.recording import Launches
from torchwhy.trace.derived.host_activity import host_during
from torchwhy.trace.derived.idle import shown_from
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.derived.steady_state import decides, shown_window
from torchwhy.trace.derived.waits import device_waits
from torchwhy.trace.meaning.frames import short_frame
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, part_of, percent, shortened

__all__ = ["Verdict", "verdict"]

_WAITS: Final = {
    VerdictKind.INPUT: "waits for the next batch",
    VerdictKind.COMMUNICATION: "only communicates",
    VerdictKind.COPY: "only copies",
    VerdictKind.COMPILE: "waits while code is compiled",
    VerdictKind.OVERHEAD: "waits for the program",
}

_HIDDEN: Final = 0.4
"""A device that has no work for this share of the time, for unrecorded reasons, is probably not the limit."""

_ALIKE: Final = 1.5
"""Neither of two stalls is the limit if they differ by less than this factor."""

_MOSTLY: Final = 0.9
"""If the unrecorded beginning takes at least this share of the window, the rest is too short for a verdict."""

_MISSING: Final = 0.1
"""If at least this part of the kernels is missing, idle time means nothing."""

_BUSY: Final = 0.8
"""Outside of one long gap, a device that has work for this share of the time is the limit there."""


class Verdict(msgspec.Struct, frozen=True):
    """The limit of the program: a kind, and sentences."""

    kind: VerdictKind
    sentence: str
    caveats: tuple[str, ...]


def verdict(trace: Trace, parts: Breakdown, launches: Launches, slugs: frozenset[str]) -> Verdict:
    """Say what limits the program.

    Args:
        trace: what was read.
        parts: where its window went.
        launches: its counts of launches.
        slugs: the names of the rules that found something.
    """
    reason = _nothing_to_go_by(trace, launches, slugs)
    if not reason and not trace.has_gpu:
        reason = unrecorded(trace, parts) or set_up(trace, parts)
    reason = reason or _captured(parts)
    if not reason and not trace.has_gpu:
        kind, sentence = processor_verdict(trace, parts)
        return Verdict(kind, sentence, caveats(trace, kind, slugs))
    gap, sure = _one_gap(parts), "overhead-bound" in slugs
    if gap and not reason and not sure:
        busy = _busy_without(trace, parts, gap)
        if parts.steps == 1 and not trace.steps_found[0].inferred and busy >= _BUSY:
            sentence = _one_after_other(trace, parts, gap, busy)
            return Verdict(VerdictKind.MIXED, sentence, caveats(trace, VerdictKind.MIXED, slugs))
        reason = _set_up(parts, gap, busy, len(trace.gpu.kernels))
    if reason:
        return _unknown(trace, reason)
    found, stalls, hidden = trace.derived(recorded), _stalls(parts), parts.share(PartName.UNKNOWN)
    if not found.launched:  # the next work may have been launched long before
        hidden += stalls[VerdictKind.OVERHEAD]
        stalls[VerdictKind.OVERHEAD] = 0.0
    kind = _device_limit(stalls, 1 - sum(stalls.values()) - parts.share(PartName.PROFILER), sure)
    if kind == VerdictKind.COMPUTE and STALL <= stalls[VerdictKind.OVERHEAD] > _waits_for_the_device(trace):
        kind = VerdictKind.OVERHEAD
    if kind == VerdictKind.COMPUTE:
        kind = _beyond_computing(trace, stalls)
    computing = parts.share(PartName.COMPUTING)
    missing = launches.without_kernel / launches.count if launches.count and "dropped-kernels" in slugs else 0.0
    lost = found.lost_copies
    if missing >= _MISSING:
        lost = f"{percent(missing)} of the kernel launches have no kernel in the file"
    if lost and computing <= 1 / 2:
        return _unknown(
            trace,
            f"{lost}: what looks idle may be busy; the GPU computes for at least {percent(computing)} of "
            f"{span_of(parts)}",
        )
    if lost:
        kind, stalls = VerdictKind.COMPUTE, dict.fromkeys(stalls, 0.0)
    if hidden >= (_HIDDEN if kind == VerdictKind.COMPUTE else max(stalls.values())) or hidden > computing + sum(
        stalls.values()
    ):
        lacks = (trace.info.recorder and found.without_operators) or "the host wasn't recorded"
        if not found.launched and found.operators:
            lacks = found.missing["order"]
        return _unknown(
            trace,
            f"{lacks}: for {percent(hidden)} of {span_of(parts)} the GPU has no work, and the "
            f"file does not show why; it computes for {percent(computing)}",
        )
    late = parts.share(PartName.ENDED, PartName.QUEUED)
    if late > computing + (0.0 if kind == VerdictKind.COMPUTE else sum(stalls.values())):
        return _unknown(
            trace,
            f"for {percent(late)} of {span_of(parts)} the GPU has no work although its next work has been launched, "
            f"and the file does not show what that waits for; it computes for {percent(computing)}",
        )
    if kind == VerdictKind.OVERHEAD and computing >= 0.4 and slowed_by_stacks(trace):
        waits = parts.share(*HOST_STALLS)
        return _unknown(
            trace,
            f"the GPU waits for the host for {percent(waits)} of {span_of(parts)}, and recording Python stacks slowed "
            f"the host down; it computes for {percent(computing)}: record once more without stacks",
        )
    sentence = _device_sentence(parts, kind, stalls, gap)
    return Verdict(kind, sentence, caveats(trace, kind, slugs))


def _nothing_to_go_by(trace: Trace, launches: Launches, slugs: frozenset[str]) -> str:
    if len(trace) and not trace.events.kind.any():
        return "no event in the file is of a kind that PyTorch's profiler writes: another tool may have made it"
    if trace.window.end <= trace.window.start:
        return "the file holds no events with a duration"
    found = trace.derived(recorded)
    if found.worked:
        why = "the file ends early, and " if trace.repairs.ends_early else ""
        return f"{why}nothing of the device's work was recorded, although it worked ({found.worked})"
    if found.exchanges:
        return found.exchanges
    if found.sampled:
        return f"{found.without_operators}: what looks idle may be busy"
    hidden = (trace.derived(shown_from) - trace.window.start) / (trace.window.end - trace.window.start)
    if hidden >= _MOSTLY:
        return f"the GPU's work in the first {percent(hidden)} of the window was not recorded"
    if not trace.has_gpu and trace.info.devices and trace.repairs.ends_early:
        device = trace.info.devices[0].name or "GPU"  # exporters write the host's events first
        return f"the file ends early, and what the {device} did may have been in the part that is lost"
    graphs = trace.links.graph_launches
    empty = len(trace.links.unrecorded_graphs)
    if empty > len(graphs) / 2 or "graph-replay-unrecorded" in slugs:
        what = counted(len(graphs), "CUDA graph was", "CUDA graphs were")
        which = "the kernels in them" if empty > len(graphs) / 2 else "some of their kernels, it seems,"
        return f"{what} replayed, and {which} were not recorded: what looks idle may be busy"
    return ""


def _captured(parts: Breakdown) -> str:
    """Why the idle time of a recording that captures a CUDA graph says nothing of the program."""
    captured, waits = parts.share(PartName.CAPTURE), parts.share(*HOST_STALLS)
    if captured < STALL or captured < waits:
        return ""
    return (
        f"a CUDA graph was captured for {percent(captured)} of {span_of(parts)}: launches are only noted, and "
        "no kernel runs, by design; record replays of the graph"
    )


def _one_gap(parts: Breakdown) -> Stretch | None:
    """The longest gap if it decides what the window's shares are, else None."""
    gap = parts.longest_gap
    idle = sum(part.time_us for part in parts.parts if part.name in HOST_STALLS)
    return gap if gap and decides(gap.duration_us, idle, parts.window_us) else None


def _busy_without(trace: Trace, parts: Breakdown, gap: Stretch) -> float:
    """For which share of the window without a gap the device has work."""
    rest, window = parts.window_us - gap.duration_us, trace.derived(shown_window)
    return trace.gpu.busy.clip(window.start, window.end).total / 1000 / rest if rest > 0 else 0.0


def _set_up(parts: Breakdown, gap: Stretch, busy: float, kernels: int) -> str:
    length, window = gap.duration_us, parts.window_us
    if kernels < FEW_KERNELS:
        return (
            f"the recording holds only {counted(kernels, 'kernel')}, and one stretch without any takes "
            f"{percent(length / window)} of {span_of(parts)}: record a few whole steps"
        )
    rest = f"; in the rest the GPU has work {percent(busy)} of the time" if window > length else ""
    return (
        f"one stretch of {duration(length)} in which the host launches nothing and the GPU has no work takes "
        f"{percent(length / window)} of {span_of(parts)}, such as set-up, a first call or a checkpoint{rest}: record "
        "several steps after warming up"
    )


def _one_after_other(trace: Trace, parts: Breakdown, gap: Stretch, busy: float) -> str:
    """Describe a step that first keeps the host busy and then the device: two limits, each with its time."""
    length, window = gap.duration_us, parts.window_us
    start = round(gap.start_us * 1000)
    rows, times = host_during(trace, start, start + round(length * 1000))
    part = times[0] / (1000 * length) if len(rows) else 0.0
    what = f" ({percent(part)} of it in {shortened(short_frame(trace.name(int(rows[0]))), 48)})" if part >= 0.5 else ""
    return (
        f"No single limit: for {percent(length / window)} of {span_of(parts)} "
        f"({part_of(length, window)}) the host does something else in one stretch{what}, and the GPU has no work; in "
        f"the other {duration(window - length)} the GPU is the limit, with work for {percent(busy)} of the time."
    )


def _stalls(parts: Breakdown) -> dict[VerdictKind, float]:
    """Shares of the window by what they would make the program, if they were the most."""
    return {
        VerdictKind.INPUT: parts.share(PartName.DATA),
        VerdictKind.COMMUNICATION: parts.share(PartName.COMMUNICATION),
        VerdictKind.COPY: parts.share(PartName.COPIES),
        VerdictKind.COMPILE: parts.share(PartName.COMPILING),
        VerdictKind.OVERHEAD: parts.share(*HOST_STALLS),
    }


def _device_limit(stalls: dict[VerdictKind, float], computing: float, overhead: bool) -> VerdictKind:
    """The stall that takes the most, of those that reach their limits; `overhead`: a rule found that one already."""
    reached = {kind: share for kind, share in stalls.items() if share >= LIMITS[kind]}
    if overhead:
        reached[VerdictKind.OVERHEAD] = stalls[VerdictKind.OVERHEAD]
    if not reached and computing < max(stalls.values()):
        reached = stalls
    if reached and stalls[VerdictKind.OVERHEAD] > max(STALL, *reached.values()):  # more than what would be named
        reached[VerdictKind.OVERHEAD] = stalls[VerdictKind.OVERHEAD]
    first, second, *_ = *sorted(reached.values(), reverse=True), 0.0, 0.0
    if first < MOST and second >= STALL and first < _ALIKE * second:
        return VerdictKind.MIXED
    return max(reached, key=lambda kind: reached[kind]) if reached else VerdictKind.COMPUTE


def _beyond_computing(trace: Trace, stalls: dict[VerdictKind, float]) -> VerdictKind:
    """What limits a device that computes most of the time: the longest stall where faster kernels would save less.

    A host that needs nearly as long as the device doesn't let it get on.
    """
    kind = max(stalls, key=lambda one: stalls[one])
    if stalls[kind] < STALL / 2 or kind not in (VerdictKind.OVERHEAD, VerdictKind.COPY):
        return VerdictKind.COMPUTE
    window, queue, gpu = trace.window, trace.derived(replay), trace.gpu
    compute = gpu.compute.clip(window.start, window.end)
    if kind == VerdictKind.COPY:
        stall = queue.saved(device=gpu.busy.clip(window.start, window.end) - compute)
    else:
        stall = queue.saved(host=Intervals.union([window.start], [window.end]) - queue.waits)
    return kind if stall > _ALIKE * queue.saved(device=compute) else VerdictKind.COMPUTE


def _waits_for_the_device(trace: Trace) -> float:
    """For which share of the window the host waits while the device works: faster kernels could save that much."""
    window = trace.derived(shown_window)
    return window.share((trace.derived(device_waits) & trace.gpu.busy).clip(window.start, window.end))


def _device_sentence(parts: Breakdown, kind: VerdictKind, stalls: dict[VerdictKind, float], gap: Stretch | None) -> str:
    share = stalls.get(kind, 0.0)
    amount = f"for {amount_of(parts, share)}"
    computing = parts.share(PartName.COMPUTING)
    one = f", {duration(gap.duration_us)} of it in one stretch," if gap else ","
    own = f"it computes for {percent(computing)}"
    if kind == VerdictKind.COMPUTE:
        waits = stalls[VerdictKind.OVERHEAD]
        limit = (
            "The GPU is the limit" if computing >= 0.8 else "The GPU's work takes more time than anything it waits for"
        )
        more = f"; for {percent(waits)} it waits for the program" if waits >= 0.1 else ""
        return f"{limit}: it computes for {amount_of(parts, computing)}{more}."
    if kind == VerdictKind.MIXED:
        order = sorted((one for one in stalls if stalls[one] >= STALL / 2), key=lambda one: -stalls[one])
        named = [f"{_WAITS[one]} for {percent(stalls[one])}" for one in order]
        return f"{no_single_limit(parts, 'the GPU ', named)}; {own}."
    sentences = {
        VerdictKind.OVERHEAD: f"The GPU waits for the program: {amount} it has no work{one} because the host is still "
        f"busy preparing it; {own}.",
        VerdictKind.INPUT: f"The GPU waits for data: {amount} it has no work, because the next batch isn't ready; "
        f"{own}.",
        VerdictKind.COMMUNICATION: f"The GPU waits for other GPUs: {amount} it only communicates; {own}.",
        VerdictKind.COPY: f"Copies are the limit: {amount} the GPU does nothing but copy; {own}.",
        VerdictKind.COMPILE: f"torch.compile was active: {amount} the GPU waits while code is compiled; {own}.",
    }
    return sentences[kind]


def _unknown(trace: Trace, reason: str) -> Verdict:
    return Verdict(VerdictKind.UNKNOWN, f"Can't tell, because {reason}.", tuple(long_step(trace)))
