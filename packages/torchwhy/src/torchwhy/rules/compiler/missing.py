"""Programs that torch.compile would suit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.meaning.annotations import DATALOADER
from torchwhy.trace.meaning.compiler import OF_A_COMPILER
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import MEMORY_CALL, WAIT_FOR_DEVICE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration, duration_ns, percent

__all__ = ["compile_missing"]


@rule(
    "E11",
    "compile-missing",
    source="a device that waits for short kernels launched one by one by operators; half of the window",
    needs={"gpu", "idle", "order", "host"},
    frees="host",
)
def compile_missing(
    trace: Trace, *, share: float = 0.5, kernels: int = 15, kernel_us: float = 15.0
) -> Iterator[Finding]:
    """Operators launch many short kernels one by one, and nothing is compiled.

    Sees: in a program of at least three steps without any trace of a compiler or of graph replays, an idle device for
    half of the window while the host is inside operators, fifteen or more kernels per step, and a median kernel below
    15 microseconds. Waiting for copies, synchronisation, allocation and data doesn't count. NVIDIA's GPUs before
    Volta are left out: Inductor has no code for them.

    Costs: at most the time given: the device idle while the host dispatches.

    Fix: torch.compile, with mode="reduce-overhead" where shapes are fixed. First remove what breaks graphs (.item(),
    printing); compiling takes a minute or so and pays off in programs that run for longer.

    Known problems: the gain is an upper bound; models that break graphs often gain little.
    """
    steps, events = trace.steps_found, trace.events
    if len(steps) < 3 or len(trace.links.graph_launches) or trace.derived(compiled_of):
        return
    if any((0, 0) < device.capability < (7, 0) for device in trace.info.devices):
        return
    if events.any_of(OF_A_COMPILER):
        return
    rows = trace.gpu.kernels
    rows = rows[events.begin_in(rows, trace.window.start, trace.window.end)]
    if len(rows) < kernels * len(steps) or float(np.median(events.dur[rows])) >= kernel_us * 1000:
        return
    operators = events.rows(Kind.OPERATOR)
    waiting = events.of(WAIT_FOR_DEVICE | MEMORY_CALL | DATALOADER)
    inside = events.times_of(operators)
    lost = (trace.derived(idle_time) & inside) - events.times_of(waiting)
    if trace.window.share(lost) < share:
        return
    outermost = operators[trace.calls.depth[operators] <= 1]
    yield Finding(
        title=f"The GPU is idle for {percent(trace.window.share(lost))} of the time while operators launch "
        f"{len(rows) / len(steps):.0f} kernels per step",
        severity="low",
        confidence="medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, outermost, times=events.covered(outermost, lost)),
        cause=f"Half of the kernels take less than {duration_ns(float(np.median(events.dur[rows])))}, which is "
        "less than PyTorch needs to launch one.",
        fix=f"Try torch.compile on the model; it can save {duration_ns(lost.total / len(steps))} per step at most, of "
        f'{duration(trace.window.us / len(steps))}. With fixed shapes mode="reduce-overhead" comes '
        "nearest to it.",
    )
