"""What was recorded of the device: everything, a part, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.launches import kernel_launches, lost_launches
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.meaning.runtime import ANY_CALL, LAUNCH_OR_ENQUEUE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration_ns, percent

__all__ = ["cpu_only", "dropped_kernels", "no_gpu_activity", "pre_window_kernels", "sampled_trace"]


@rule("A1", "no-gpu-activity", source="kineto issue 109, PyTorch issue 67349", mutes=("gpu", "idle", "order"))
def no_gpu_activity(trace: Trace) -> Iterator[Finding]:
    """Kernels were launched, but nothing the device did was recorded.

    Sees: calls that launch kernels, and not one kernel, copy or fill. Ranges of the range profiler
    (`cuda_profiler_range`) in their place mean that hardware counters were recorded, which excludes the other.

    Costs: nothing can be said about the device. Without this, such a trace reads as "the device is idle all the time".

    Fix: add `ProfilerActivity.CUDA` (or `XPU`) to `activities`; end other users of the device's tracing interface
    (Nsight Compute, DCGM, a second profiler); check that the driver is new enough for the installed PyTorch. For
    counters and times both, record twice.

    Known problems: why the device's activity is missing isn't in the trace, so the causes are those that were met.
    """
    launches = trace.derived(kernel_launches)
    if trace.has_gpu or not len(launches):
        return
    if len(trace.events.rows(Kind.COUNTER_RANGE)):
        yield _counters(trace, launches)
        return
    cuda = trace.events.any_of(ANY_CALL)
    activities = (
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]" if cuda else "the device's ProfilerActivity as well"
    )
    yield Finding(
        title=f"{len(launches):,} kernel launches, but no work of the device was recorded",
        severity="high",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, launches, limit=3),
        cause="The profiler was not asked for the device's activity, or its tracing interface was not available.",
        fix=(
            f"Record with {activities}. If it was asked for: another "
            "profiler (Nsight Compute, DCGM) may hold the tracing interface, or the driver doesn't fit this PyTorch."
        ),
        linked=True,
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


@rule("A2", "cpu-only", source="absence of launches and of device work")
def cpu_only(trace: Trace) -> Iterator[Finding]:
    """The program ran on the CPU, or left nothing in the trace.

    Sees: no work of a device and no launch of any, whatever the maker calls it.

    Costs: nothing by itself. It tells which rules have nothing to look at.

    Fix: none, unless the program was meant to use a GPU: then the model or its inputs never reached it.

    Known problems: a program that was recorded without its device's calls and without its work looks the same; where
    the machine has a GPU, the finding says so.
    """
    if trace.has_gpu or len(trace.links.launches) or trace.events.any_of(LAUNCH_OR_ENQUEUE):
        return
    names = sorted({device.name for device in trace.info.devices if device.name})
    if not len(trace.events.rows(*HOST)):
        title, cause = "Nothing of a program was recorded", "The file holds no operator, no call and no kernel."
        fix = "Let the profiled part of the program run at least one step: with a schedule, call step() often enough."
    elif names:
        title = f"The program ran on the CPU, though the machine has {names[0]}"[:118]
        cause = "The recording holds no launch and no work of the GPU: nothing ran there, or its recording was refused."
        fix = (
            "If it was meant to run on the GPU: move the model and every input there with .to('cuda'). If it did: "
            "record the GPU's activity (ProfilerActivity.CUDA) and end other profilers; KINETO_LOG_LEVEL=1 says what "
            "refused it."
        )
    else:
        title, cause = "The program ran on the CPU", "No GPU is listed and nothing was launched on one."
        fix = ""
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


@rule("A3", "dropped-kernels", source="PyTorch issue 192021", mutes=("idle",))
def dropped_kernels(trace: Trace, *, share: float = 0.01, wrong: float = 0.1) -> Iterator[Finding]:
    """Some launches have no kernel: a part of the device's work is missing.

    Sees: calls that launch one kernel each, outside the recording of CUDA graphs, whose correlation id no device work
    has: more than 1% of them. Graph launches have a rule of their own, graph-replay-unrecorded.

    Costs: idle time is overstated by what the missing kernels took.

    Fix: give the profiler's schedule a warm-up of at least one step, profile fewer steps, and use a newer PyTorch.

    Known problems: launches of a graph's capture leave no kernels by design. They are left out where the capture's
    calls or frames were recorded.
    """
    if not trace.has_gpu:
        return
    launches = trace.derived(kernel_launches)
    launches = launches[~np.isin(launches, trace.links.graph_launches)]
    lost = lost_launches(trace)
    if len(lost) <= share * len(launches):
        return
    part = len(lost) / len(launches)
    yield Finding(
        title=f"{len(lost):,} of {len(launches):,} kernel launches ({percent(part)}) have no kernel in the trace",
        severity="high" if part >= wrong else "low",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, lost, limit=3),
        cause="The profiler's buffers for device work were dropped, or recording began or ended among the launches.",
        fix="Use schedule(wait=1, warmup=1, active=3): a warm-up and a short window; a newer PyTorch loses fewer.",
        linked=True,
    )


@rule("A4", "pre-window-kernels", source="observed on traces whose device lags behind the host", needs=("gpu",))
def pre_window_kernels(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """The device worked on what was launched before recording began, or on what nothing ties to a launch.

    Sees: kernels, copies and fills whose launch is not in the trace, more than 1% of the device's work. Launched before
    the recording is what ran before the first recorded call, or has a lower id than every recorded one. Where calls and
    work carry no correlation ids, the operators' `External id` ties them, which is said.

    Costs: nothing. They count as busy time, but belong to no step of this trace, and tools that leave them out report
    another idle time.

    Fix: none is needed. To get rid of work from before, call `torch.cuda.synchronize()` once before the first recorded
    step.

    Known problems: a launch that the recording lost looks like one from before it, if its work is among the first.
    """
    links, events = trace.links, trace.events
    work, early = links.work, links.before_recording
    alone = np.setdiff1d(work[links.launch < 0], early)
    known = work[links.launch >= 0]
    if links.inferred.any():
        yield _inferred(trace)
    if len(early) > share * len(work) and len(known):
        kernels = int(np.count_nonzero(events.kind[early] == Kind.KERNEL))
        lag = max(int(events.ts[known[0]] - events.ts[early].min()), 0)
        only = f"; for {duration_ns(lag)} nothing else ran" if lag else ""
        behind = int((events.ts[known] - events.ts[links.launch[links.launch >= 0]]).max())
        yield Finding(
            title=f"{counted(kernels, 'kernel was', 'kernels were')} launched before recording began{only}",
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
    which = f"None of the {len(rows):,} pieces" if every else f"{len(rows):,} of {len(trace.links.work):,} pieces"
    if every:
        cause = "The host's calls weren't recorded, or carry no ids: nothing ties device work to operators."
        fix = "Record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
    else:
        cause = "They run all through the recording, so their launches were lost or carry no ids."
        fix = "They are counted as busy time, and belong to no operator. A newer PyTorch loses fewer."
    return Finding(
        title=f"{which} of device work {'has its' if every else 'have no'} launch in the trace",
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=_top(trace, rows, "a part of busy time, of no operator"),
        cause=cause,
        fix=fix,
        linked=True,
    )


@rule(
    "A19", "sampled-trace", source="distance between the correlation ids of successive recorded calls", mutes=("idle",)
)
def sampled_trace(trace: Trace) -> Iterator[Finding]:
    """Only a sample of the calls was recorded.

    Sees: correlation ids that advance by a hundred or more from one recorded call to the next. In whole recordings they
    advance by one to eleven, since every call takes one.

    Costs: counts are those of the sample, gaps hold work that wasn't recorded, and no step is whole. Shares and kinds
    of kernels are as good as the sample.

    Fix: record a short window whole (`schedule(wait=1, warmup=1, active=3)`) to judge gaps, counts and steps.

    Known problems: ids count calls that are never recorded too, so the rate is an upper bound.
    """
    links = trace.links
    if not links.sampled:
        return
    yield Finding(
        title=f"Only a sample was recorded: about one call in {links.stride:,.0f}",
        severity="high",
        confidence="medium",
        window=trace.window,
        evidence=evidence(trace, links.launches, limit=3),
        cause="The ids of successive recorded calls are that far apart, and each call takes the next id.",
        fix="Believe names and shares, not gaps, counts and steps; for those record a short window whole.",
    )


def _top(trace: Trace, rows: np.ndarray, note: str) -> tuple[Evidence, ...]:
    return evidence(trace, rows, limit=3, note=note)
