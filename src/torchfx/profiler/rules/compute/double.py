"""Double precision, on devices and on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.compute.kernels import caveat, kernels_of, matters, rank, shown, stake
from torchfx.profiler.rules.compute.shapes import dtypes
from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.intervals import Intervals
from torchfx.profiler.trace.kinds import Kind
from torchfx.profiler.trace.peaks import peaks_of
from torchfx.profiler.trace.trace import Trace

__all__ = ["fp64"]


@rule(
    "D4", "fp64", source="`dgemm` and `double` in names of kernels, or inputs of type double; 5 % of the kernels' time"
)
def fp64(trace: Trace, *, share: float = 0.05, cpu_share: float = 0.5) -> Iterator[Finding]:
    """Much is computed in double precision.

    Sees: kernels in float64 from 5 % of the kernels' time on; without a device, operators with inputs of type `double`
    in half of the operators' own time (needs `record_shapes=True`).

    Costs: a 64th of the float32 speed on consumer and inference GPUs, half of it on A100, H100 and MI300X; on any
    device and on CPUs twice the memory traffic.

    Fix: pass float32. Usual sources are NumPy arrays, which are float64 unless told otherwise, and filter coefficients.
    """
    if trace.has_gpu:
        yield from _fp64_on_device(trace, share)
    else:
        yield from _fp64_on_cpu(trace, cpu_share)


def _fp64_on_device(trace: Trace, share: float) -> Iterator[Finding]:
    kernels = trace.derived(kernels_of)
    chosen = kernels.that(lambda name: name.dtype in ("float64", "complex128"))
    part = kernels.share(chosen)
    if part < share:
        return
    rows = kernels.rows[chosen]
    time_us = stake(trace, rows)
    if not matters(trace, time_us):
        return
    known = peaks_of(trace.info.devices[0].name) if trace.info.devices else None
    single, double = (known.flops("float32"), known.flops("float64")) if known else (0.0, 0.0)
    rate = f" This device computes float64 at 1/{single / double:.0f} of its float32 speed." if double < single else ""
    yield Finding(
        title=f"{part:.0%} of the kernels' time is spent in float64",
        severity=rank(trace, time_us),
        confidence="high",
        time_us=time_us,
        window=trace.window,
        evidence=shown(trace, rows),
        cause="Inputs are double, often because they come from NumPy." + rate + caveat(trace),
        fix="Convert to float32 before the data goes to the device (.float(), dtype=np.float32), if float32 is enough.",
        linked=True,
    )


def _fp64_on_cpu(trace: Trace, share: float) -> Iterator[Finding]:
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[trace.in_steps(rows)]
    kinds = events.text_ids("Input type", rows)
    if not (kinds >= 0).any():
        return
    first = {i: events.texts[i] for i in np.unique(kinds).tolist() if i >= 0}
    double = np.array([i for i, text in first.items() if '"double"' in text or "<double>" in text], np.int32)
    spent = trace.calls.self_time[rows]
    chosen = np.isin(kinds, double)
    total = int(spent.sum())
    part = float(spent[chosen].sum()) / total if total else 0.0
    busy = Intervals.union(events.ts[rows[chosen]], events.end[rows[chosen]]).clip(trace.window.start, trace.window.end)
    time_us = min(busy.total, int(spent[chosen].sum())) / 1000
    if part < share or time_us < share * trace.window.us or "float64" not in dtypes(trace, int(rows[chosen][0])):
        return
    yield Finding(
        title=f"{part:.0%} of the operators' time is spent on float64",
        severity=min(severity_of(time_us / trace.window.us), "low", key=("info", "low", "medium", "high").index),
        confidence="medium",
        time_us=time_us,
        window=trace.window,
        evidence=evidence(trace, rows[chosen], times=spent[chosen]),
        cause="Inputs are double: a float32 vector holds twice as many numbers and moves half the bytes.",
        fix="Pass float32 where its precision is enough (24 bits of mantissa, about 150 dB in audio).",
        linked=True,
    )
