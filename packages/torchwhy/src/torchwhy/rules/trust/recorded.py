"""The recorded work of the device: all, a part, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.rules.vendor import profilers
from torchwhy.trace.derived.idle import earlier_work
from torchwhy.trace.derived.launches import kernel_launches, lost_launches
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import BACKWARD_LABEL
from torchwhy.trace.meaning.frames import BACKWARD_CALL
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.meaning.runtime import ANY_CALL, LAUNCH_OR_ENQUEUE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, duration_ns, percent, sentence

__all__ = [
    "cpu_only",
    "dropped_kernels",
    "no_gpu_activity",
    "operators_missing",
    "pre_window_kernels",
    "sampled_trace",
]

WHOLE: Final = 13.0
"""In a recording of everything, ids advance at most this much from one recorded call to the next."""


@rule("A1", "no-gpu-activity", source="kineto issue 109, PyTorch issue 67349", frees="nothing")
def no_gpu_activity(trace: Trace) -> Iterator[Finding]:
    """A device worked, but nothing of its work was recorded.

    Sees: no kernel, copy or fill, but signs of them: calls that launch kernels, waits for a device of a millisecond or
    more, operators and collectives that only a device has, memory allocated on it. Ranges of the range profiler
    (`cuda_profiler_range`) mean that hardware counters were recorded, which excludes the other.

    Costs: the device's work is unknown. Without this, such a trace reads as "the device is idle all the time",
    or as a program of the processor.

    Fix: add `ProfilerActivity.CUDA` (or `XPU`) to `activities`; where the runtime's calls were recorded it was there:
    end other users of the device's tracing interface (Nsight Compute, DCGM, a second profiler), check that the driver
    is new enough for the installed PyTorch, and whether a tool took the kernels out of the file. For counters and times
    both, record twice.

    Known problems: why the device's activity is missing isn't in the trace, so the fix lists the causes that are known.
    """
    found = trace.derived(recorded)
    if trace.has_gpu or not found.worked:
        return
    events = trace.events
    launches = trace.derived(kernel_launches)
    if len(launches) and len(events.rows(Kind.COUNTER_RANGE)):
        yield _counters(trace, launches)
        return
    calls = events.of(ANY_CALL | LAUNCH_OR_ENQUEUE)
    if trace.repairs.ends_early:
        cause = "The file ends early, and exporters write the device's work behind the host's: it was in the lost part."
        fix = "Use the whole file, or record again and let the program end before the file is copied."
    elif len(calls):
        cause = (
            "Calls of the device's runtime were recorded, so the device's activity was requested. Its records were "
            "refused, lost, or taken out of the file."
        )
        fix = (
            f"End other profilers ({profilers(trace)}) that hold the device's tracing interface, and check that the "
            "driver fits this PyTorch; KINETO_LOG_LEVEL=1 prints what was refused. If a tool made the file smaller, "
            "use the original."
        )
    else:
        cause = "Only the processor's activity was recorded."
        fix = "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] (or XPU)."
    yield Finding(
        title=f"A device worked ({found.worked}), but nothing of its work was recorded"[:118],
        severity="high",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, launches if len(launches) else found.signs, limit=3),
        cause=cause,
        fix=fix,
        linked=not trace.repairs.ends_early,
    )


def _counters(trace: Trace, launches: Int32) -> Finding:
    """The finding where counters were recorded instead of kernels."""
    ranges = trace.events.rows(Kind.COUNTER_RANGE)
    return Finding(
        title=f"Hardware counters were recorded ({len(ranges):,} ranges), not the times of {len(launches):,} launches",
        severity="high",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, ranges, limit=3),
        cause="profiler_metrics was set in the profiler's experimental_config: CUPTI's range profiler runs instead of "
        "the recording of kernels.",
        fix="For times, record once more without profiler_metrics; the counters are in the ranges' arguments.",
        linked=True,
    )


@rule("A2", "cpu-only", source="absence of launches and of device work", frees="nothing")
def cpu_only(trace: Trace) -> Iterator[Finding]:
    """No work of a device was recorded, and nothing shows that one worked.

    Sees: no work, call, operator, collective or memory of a device. If the file's list of devices is empty, the program
    ran on the processor.

    Costs: nothing by itself. It shows which rules cannot apply.

    Fix: none, unless the program was meant to use a GPU: then the model or its inputs never reached it, or the GPU's
    activity was not recorded.

    Known problems: a GPU program that was recorded with `ProfilerActivity.CPU` alone looks the same, unless it calls an
    operator that only a device has.
    """
    found = trace.derived(recorded)
    if trace.has_gpu or found.worked:
        return
    names = sorted({device.name for device in trace.info.devices if device.name})
    fix = (
        "If it was meant to run on the GPU: move the model and every input there with .to('cuda'). If it did: "
        "record the GPU's activity (ProfilerActivity.CUDA) and end other profilers; KINETO_LOG_LEVEL=1 prints what was "
        "refused."
    )
    if not len(trace.events.rows(*HOST)):
        title, cause = "Nothing of a program was recorded", "The file holds no operator, no call and no kernel."
        fix = "Let the profiled part of the program run at least one step: with a schedule, call step() often enough."
    elif found.processor_only:
        title, cause, fix = "The program ran on the CPU", "The file's list of the machine's GPUs is empty.", ""
    else:
        title = f"No work of the {names[0]} was recorded"[:118] if names else "No work of a GPU was recorded"
        cause = "Either the program ran on the CPU, or the GPU's activity was not recorded: the file fits both."
    yield Finding(
        title=title,
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=(),
        cause=cause,
        fix=fix,
        linked=True,
    )


@rule("A20", "operators-missing", source="labels, frames and kernels without operators", frees="nothing")
def operators_missing(trace: Trace) -> Iterator[Finding]:
    """The operators that the program called were not recorded, or those of the backward pass were not.

    Sees: labels, frames or calls, and no operator; or a call of `backward`, or an optimizer's step, around which the
    trace has no node of autograd.

    Costs: what the host does then looks like Python, and kernels belong to no operator. Rules that need operators are
    muted.

    Fix: record with `ProfilerActivity.CPU`. With a file that was filtered, use the original: autograd runs the backward
    pass of a device in a separate thread.

    Known problems: a program that computes its gradients by hand in a function called "backward", without PyTorch's
    operators, looks the same.
    """
    found, window = trace.derived(recorded), trace.window
    if not len(trace.events.rows(*HOST)) or found.sampled:
        return
    if len(found.backward):
        yield Finding(
            title=f"The backward pass was recorded without its operators: {duration_ns(found.backward.total)} "
            f"of {duration(window.us)}",
            severity="info",
            confidence="medium",
            stretches=found.backward,
            window=window,
            evidence=evidence(trace, trace.events.of(BACKWARD_LABEL | BACKWARD_CALL), limit=3),
            cause="Autograd runs the backward pass of a device in its own thread, and that thread isn't in the file.",
            fix="Use the whole file, or record again; the host's work in the backward pass is unknown.",
        )
    elif not found.operators:
        yield Finding(
            title="No operator of PyTorch was recorded",
            severity="info",
            confidence="high",
            window=window,
            evidence=(),
            cause=sentence(found.without_operators)
            if trace.info.recorder
            else "The processor's activity was not recorded, or the operators were taken out of the file; or the "
            "recorded threads didn't call any.",
            fix=sentence(trace.info.recording_operators)
            if trace.info.recording_operators
            else "Record with activities=[ProfilerActivity.CPU, ...]; threads that the program starts need "
            "experimental_config=_ExperimentalConfig(profile_all_threads=True).",
            linked=True,
        )


@rule("A3", "dropped-kernels", source="PyTorch issue 192021", mutes=("idle",), frees="nothing")
def dropped_kernels(trace: Trace, *, share: float = 0.01, wrong: float = 0.1) -> Iterator[Finding]:
    """Some launches have no kernel: a part of the device's work is missing.

    Sees: calls that launch one kernel each, outside the recording of CUDA graphs, whose correlation id no device work
    has: more than 1% of them. Graph launches have a separate rule, graph-replay-unrecorded.

    Costs: idle time is overstated by what the missing kernels took.

    Fix: give the profiler's schedule a warm-up of at least one step, profile fewer steps, and use a newer PyTorch.

    Known problems: launches of a graph's capture leave no kernels by design. They are left out where the capture's
    calls or frames were recorded.
    """
    if not trace.has_gpu:
        return
    launches = trace.derived(kernel_launches)
    launches = launches[~np.isin(launches, trace.links.graph_launches)]
    lost = trace.derived(lost_launches)
    if len(lost) <= share * len(launches):
        return
    part = len(lost) / len(launches)
    yield Finding(
        title=f"The kernels of {len(lost):,} of {len(launches):,} launches ({percent(part)}) aren't in the trace",
        severity="high" if part >= wrong else "low",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, lost, limit=3),
        cause="The profiler's buffers for device work were dropped, or recording began or ended among the launches.",
        fix="Record once more, a stretch of whole steps with nothing cut out."
        if trace.info.recorder
        else "Use schedule(wait=1, warmup=1, active=3): a warm-up and a short window; a newer PyTorch loses fewer.",
        linked=True,
    )


@rule(
    "A4",
    "pre-window-kernels",
    source="observed on traces whose device lags behind the host",
    needs=("gpu",),
    frees="nothing",
)
def pre_window_kernels(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """The device worked on what was launched before recording began, or on what nothing ties to a launch.

    Sees: kernels, copies and fills whose launch is not in the trace, more than 1% of the device's work. Launched before
    the recording ran before the first recorded call, or has a lower id than every recorded one. Where calls and
    work carry no correlation ids, the operators' `External id` ties them, and the finding says so.

    Costs: nothing. They count as busy time, but belong to no step of this trace, and tools that leave them out report
    another idle time.

    Fix: none is needed. To get rid of work from before, call `torch.cuda.synchronize()` once before the first recorded
    step.

    Known problems: a launch that the recording lost looks like one from before it, if its work is among the first.
    """
    links, events = trace.links, trace.events
    work, early = links.work, links.before_recording
    unknown = np.zeros(len(events), np.bool_)
    unknown[work[links.launch < 0]] = True
    unknown[early] = False
    alone = np.flatnonzero(unknown).astype(np.int32)
    known = work[links.launch >= 0]
    if links.inferred.any():
        yield _inferred(trace)
    if len(early) > share * len(work) and len(known):
        kernels = int(np.count_nonzero(events.kind[early] == Kind.KERNEL))
        by_itself = trace.derived(earlier_work).total
        only = f"; for {duration_ns(by_itself)} only such work runs" if by_itself else ""
        behind = int((events.ts[known] - events.ts[links.launch[links.launch >= 0]]).max())
        yield Finding(
            title=f"The recording begins with {counted(kernels, 'kernel')} launched before it{only}",
            severity="info",
            confidence="high",
            window=trace.window,
            evidence=_top(trace, early, "a part of busy time, of no step"),
            cause="The device was behind the host when the profiler started and first did what was queued. "
            f"Work waits up to {duration_ns(behind)} in the queue.",
            fix="They are counted as busy time. Call torch.cuda.synchronize() before the first recorded step to avoid "
            "them.",
            linked=True,
        )
    if len(alone) > share * len(work):
        yield _alone(trace, alone)


def _inferred(trace: Trace) -> Finding:
    """The finding where operators' ids stand in for correlation ids."""
    links = trace.links
    rows = links.work[links.inferred]
    return Finding(
        title=f"{len(rows):,} of {len(links.work):,} pieces of device work are tied to their launch by the operator's "
        "id",
        severity="info",
        confidence="medium",
        window=trace.window,
        evidence=_top(trace, rows, "inferred"),
        cause="Neither the calls nor the work carry a correlation id; of one operator they are paired in order, by "
        "External id. What follows from launches is inferred.",
        fix="A newer PyTorch writes correlation ids.",
    )


def _alone(trace: Trace, rows: Int32) -> Finding:
    """The finding where device work has no launch, for another reason than its age."""
    every = len(rows) == len(trace.links.work)
    which = f"all {len(rows):,}" if every else f"{len(rows):,} of {len(trace.links.work):,}"
    if every:
        cause = "The host's calls weren't recorded, or carry no ids: nothing ties device work to operators."
        fix = "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
    else:
        cause = "They run all through the recording, so their launches were lost or carry no ids."
        fix = "They are counted as busy time, and belong to no operator. A newer PyTorch loses fewer."
    return Finding(
        title=f"The launches of {which} pieces of device work aren't in the trace",
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=_top(trace, rows, "a part of busy time, of no operator"),
        cause=cause,
        fix=fix,
        linked=True,
    )


@rule(
    "A19",
    "sampled-trace",
    source="distance between the correlation ids of successive recorded calls",
    mutes=("idle",),
    frees="nothing",
)
def sampled_trace(trace: Trace) -> Iterator[Finding]:
    """Only a sample of the calls was recorded.

    Sees: correlation ids that advance by 50 or more from one recorded call to the next, on average. In whole recordings
    they advance by 1 to 13, since calls that are never recorded take ids too.

    Costs: counts refer to the sample, gaps hold work that wasn't recorded, and no step is whole. Shares and kinds
    of kernels are as good as the sample.

    Fix: record a short window whole (`schedule(wait=1, warmup=1, active=3)`) to judge gaps, counts and steps.

    Known problems: ids count calls that are never recorded too, so the rate is an upper bound.
    """
    links = trace.links
    if not links.sampled:
        return
    yield Finding(
        title=f"Only a sample was recorded: between one call in {links.stride / WHOLE:,.0f} and one in "
        f"{links.stride:,.0f}",
        severity="high",
        confidence="medium",
        window=trace.window,
        evidence=evidence(trace, links.launches, limit=3),
        cause=f"The ids of successive recorded calls are {links.stride:,.0f} apart on average; in whole recordings "
        f"they are 1 to {WHOLE:.0f} apart, since calls that aren't recorded take ids, too.",
        fix="Trust names and shares, but not gaps, counts and steps; for those record a short window whole.",
    )


def _top(trace: Trace, rows: np.ndarray, note: str) -> tuple[Evidence, ...]:
    return evidence(trace, rows, limit=3, note=note)
