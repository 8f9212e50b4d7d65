"""What a recorded study shows, in sentences."""

from __future__ import annotations

from torchwhy.experiment.case import Case
from torchwhy.experiment.reading import Reading
from torchwhy.wording import duration, percent, seconds

__all__ = ["notes", "why"]

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


def notes(reading: Reading, case: Case, fastest_s: float | None) -> list[str]:
    """Return what stands out, in sentences.

    A slow first step, a wait before the first operator, a kernel whose mean misleads, steps far slower than a call is.
    """
    return [*_about_steps(reading, case), *_waiting(reading, fastest_s)]


def _about_steps(reading: Reading, case: Case) -> list[str]:
    said = []
    first, rest = reading.steps[0], sorted(step.host_us for step in reading.steps[1:])
    usual_us = rest[len(rest) // 2] if rest else first.host_us
    if first.host_us > SLOW_FIRST * usual_us:
        remedy = "something is prepared there, once" if case.warm else "a warm run keeps that out of the trace"
        said.append(f"step #{first.number} takes {first.host_us / usual_us:.1f} times the usual one: {remedy}")
    if first.dead_us is not None and first.dead_us > COLD_DEAD_US:
        passes = f"{duration(first.dead_us)} pass before its first operator"
        said.append(f"{passes}: preparation that happens once, not work")
    said += [
        f"a kernel takes {duration(k.mean_us)} on average, but {duration(k.median_us)} usually: trust the median"
        for k in reading.kernels
        if k.mean_us > MISLEADING_MEAN * k.median_us
    ]
    return said


def _waiting(reading: Reading, fastest_s: float | None) -> list[str]:
    """Say so when the recorded steps took far longer than the same call can."""
    if fastest_s is None or reading.host_us < CONTENDED * fastest_s * 1e6 + PROFILED_US:
        return []
    factor = reading.host_us / (fastest_s * 1e6)
    cause = "the machine is busy, or threads wait for each other"
    return [f"recorded steps take {factor:,.0f} times what a call takes at its fastest: {cause}"]
