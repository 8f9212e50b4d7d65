"""A study's reading, in lines of text."""

from __future__ import annotations

from torchfx.profiler.experiment.case import Case
from torchfx.profiler.experiment.reading import Call, Kernel, Reading, Step
from torchfx.profiler.wording import duration, percent, seconds

__all__ = ["describe", "why"]

SHOWN = 20  # steps
SLOW_FIRST = 1.5  # times the usual step
COLD_DEAD_US = 50.0  # a wait before the first operator as long as this is preparation; a warm one is about 5 us
CONTENDED = 3.0  # times the fastest call, and
PROFILED_US = 50.0  # what recording a few operators adds at most
MISLEADING_MEAN = 1.25  # times the median


def why(reading: Reading, work_share: float, fastest_s: float | None, floor_s: float | None) -> str:
    """Return the evidence for a verdict, in one line."""
    if fastest_s is not None and floor_s is not None:
        return (
            f"at its fastest a call takes {seconds(fastest_s)}, and {seconds(floor_s)} on size 1, "
            f"so {percent(work_share)} of it is work"
        )
    return (
        f"the host needs {duration(reading.host_us)} a step and the device {duration(reading.device_us)}, "
        f"so the device works {percent(work_share)} of the time"
    )


def describe(reading: Reading, case: Case, fastest_s: float | None) -> list[str]:
    """Return what a reader should see: schedule, steps, what stands out, calls, kernels."""
    schedule = case.schedule
    lines = [f"  schedule  wait {schedule.wait}, warmup {schedule.warmup}, active {schedule.active}"]
    lines.append("  step      host       to first operator   device     launches   launch to start")
    lines += [_step_row(step) for step in reading.steps[:SHOWN]]
    lines += [f"  note      {note}" for note in [*_notes(reading, case), *_waiting(reading, fastest_s)]]
    lines += [f"  {'calls' if i == 0 else '':<10}{_call_row(call)}" for i, call in enumerate(reading.calls)]
    lines += [_kernel_row(kernel) for kernel in reading.kernels]
    own = ", ".join(f"{name} {duration(us)}" for name, us in reading.profiler_us)
    return [*lines, f"  profiler  {own}: its own, not the program's"] if own else lines


def _step_row(step: Step) -> str:
    dead = "-" if step.dead_us is None else duration(step.dead_us)
    device = duration(step.device_us) if step.launches else "-"
    delay = "-" if step.delay_us is None else duration(step.delay_us)
    return f"  #{step.number:<8} {duration(step.host_us):<10} {dead:<19} {device:<10} {step.launches:<10} {delay}"


def _call_row(call: Call) -> str:
    return "  " * call.depth + call.name + (f"  x {call.n}" if call.n > 1 else "")


def _kernel_row(kernel: Kernel) -> str:
    times = f"median {duration(kernel.median_us)}, mean {duration(kernel.mean_us)}, "
    times += f"{duration(kernel.min_us)} .. {duration(kernel.max_us)}"
    return f"  kernel    {kernel.n} times, {times}: {kernel.name}"


def _notes(reading: Reading, case: Case) -> list[str]:
    """Say what stands out: a slow first step, a wait before the first operator, a kernel whose mean misleads."""
    notes = []
    first, rest = reading.steps[0], sorted(step.host_us for step in reading.steps[1:])
    usual_us = rest[len(rest) // 2] if rest else first.host_us
    if first.host_us > SLOW_FIRST * usual_us:
        remedy = "something is prepared there, once" if case.warm else "a warm run keeps that out of the trace"
        notes.append(f"step #{first.number} takes {first.host_us / usual_us:.1f} times the usual one: {remedy}")
    if first.dead_us is not None and first.dead_us > COLD_DEAD_US:
        passes = f"{duration(first.dead_us)} pass before its first operator"
        notes.append(f"{passes}: preparation that happens once, not work")
    notes += [
        f"a kernel takes {duration(k.mean_us)} on average, but {duration(k.median_us)} usually: trust the median"
        for k in reading.kernels
        if k.mean_us > MISLEADING_MEAN * k.median_us
    ]
    return notes


def _waiting(reading: Reading, fastest_s: float | None) -> list[str]:
    """Say so when the recorded steps took far longer than the same call can."""
    if fastest_s is None or reading.host_us < CONTENDED * fastest_s * 1e6 + PROFILED_US:
        return []
    factor = reading.host_us / (fastest_s * 1e6)
    cause = "the machine is busy, or threads wait for each other"
    return [f"recorded steps take {factor:,.0f} times what a call takes at its fastest: {cause}"]
