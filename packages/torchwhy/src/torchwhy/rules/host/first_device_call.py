"""The first call for a device, which sets up its driver."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.first_step import has_cold_first_step
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.launches import kernel_launches
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import COPY_CALL, WAIT_FOR_DEVICE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["first_device_call"]


@rule("B29", "first-device-call", source="0.3 to 30 s in one call of traces that begin with the program", frees="host")
def first_device_call(trace: Trace, *, long_ms: float = 100.0, share: float = 0.05) -> Iterator[Finding]:
    """The first call for the device takes long.

    Sees: the longest call of the driver or runtime library before anything was launched or ran on a device, of 100 ms
    or more and 5% of the window. Copies and waits are left out. A cold first step is first-step-cold's.

    Costs: the call makes the device's context and loads libraries: 0.3 to 30 s, paid by every process. It lies in front
    of all work and distorts whatever is averaged over the recording.

    Fix: begin the recording after warm-up. A start-up that must be short: fewer libraries, lazy loading
    (`CUDA_MODULE_LOADING=LAZY`), the driver's persistence mode.

    Known problems: a slow call for another reason, such as a busy machine, looks the same.
    """
    events, window = trace.events, trace.window
    calls = events.rows(Kind.RUNTIME)
    launches = trace.derived(kernel_launches)
    begun = [int(events.ts[launches].min())] if len(launches) else []
    begun += [trace.gpu.span[0]] if trace.has_gpu else []
    if not begun or has_cold_first_step(trace):
        return
    calls = calls[(events.ts[calls] < min(begun)) & ~events.are(WAIT_FOR_DEVICE | COPY_CALL, calls)]
    if not len(calls):
        return
    row = calls[[int(np.argmax(events.dur[calls]))]]
    when = trace.when(row)
    if events.dur[row[0]] < long_ms * 1e6 or window.share(when) < share:
        return
    name = trace.name(int(row[0]))
    yield Finding(
        title=f"The first use of the device takes {percent(window.share(when))} of the time: "
        f"{duration_ns(int(events.dur[row[0]]))} in {name}",
        most="medium",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, row),
        cause="The first call in a process makes the device's context and loads libraries.",
        fix="Every process pays this, so leave it out of the recording: use the device and warm up before it begins "
        "(schedule(wait=1, warmup=1, active=3)).",
    )
