"""Calls that launch work and take unusually long."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.first_step import has_cold_first_step
from torchwhy.rules.host.queue import FULL
from torchwhy.rules.rule import rule
from torchwhy.rules.vendor import loading_at_start
from torchwhy.trace.derived.host_activity import otherwise_engaged
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.derived.launches import kernel_launches, launch_queues
from torchwhy.trace.derived.steady_state import steady_device_window
from torchwhy.trace.model.steps import main_phase
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns

__all__ = ["launch_outliers"]


@rule(
    "B5", "launch-outliers", source="50 us as in Holistic Trace Analysis", needs=("gpu", "idle", "order"), frees="host"
)
def launch_outliers(trace: Trace, *, long_us: float = 50.0, share: float = 0.01) -> Iterator[Finding]:
    """Some launches take unusually long, and the device waits for them.

    Sees: launching calls of more than 50 us, and the time during them in which no device has work: 1% of the window or
    more. Calls into a full queue wait by design and are not counted, nor are launches of graphs, their capture,
    compilation and a cold first step.

    Costs: the device's time during these calls.

    Fix: warm up with the same shapes, so that kernels are loaded and memory is there; leave the process enough cores;
    look for other threads that hold Python's lock.

    Known problems: a thread that the operating system takes off its processor in such a call looks the same as a slow
    call.
    """
    events = trace.events
    window = trace.derived(steady_device_window)
    rows = trace.derived(kernel_launches)
    rows = rows[~np.isin(rows, trace.links.graph_launches)]  # those take as long as they have nodes
    rows = rows[(events.dur[rows] > long_us * 1000) & trace.in_steps(rows) & (events.ts[rows] >= window.start)]
    if has_cold_first_step(trace):
        rows = rows[events.ts[rows] >= main_phase(trace.steps_found)[1].start]
    full = [queue.launches[queue.depth >= FULL] for queue in trace.derived(launch_queues)]
    rows = rows[~np.isin(rows, np.concatenate(full))] if full else rows
    idle = trace.derived(idle_time) - trace.derived(otherwise_engaged)
    lost = events.covered(rows, idle)
    rows, lost = rows[lost > 0], lost[lost > 0]
    waited = (idle & events.times_of(rows)).clip(window.start, window.end)
    part = window.share(waited)
    if not len(rows) or part < share:
        return
    kernels = trace.links.put_by(rows)
    first = _first_uses(trace, rows)
    once = first * 2 >= len(rows)
    if once:
        which = "Each of them" if first == len(rows) else f"{first} of {len(rows)}"
        which = "It" if len(rows) == 1 else which
        cause = f"{which} launches a kernel for the first time in the trace: its code is loaded then."
        fix = f"Warm up with the same shapes before recording, or set {loading_at_start(trace)}."
    else:
        cause = "The thread was held up: by another thread, by the processor's other work, or in the driver."
        fix = "Check that the process has free cores (taskset, cgroup limits) and what its other threads do meanwhile."
    yield Finding(
        title=_title(len(rows), long_us, duration_ns(events.dur[rows].max())),
        most="low" if once else "high",
        once=once,
        confidence="medium",
        stretches=events.times_of(rows).clip(window.start, window.end),
        window=window,
        evidence=(
            *evidence(trace, rows, times=lost, limit=3),
            *evidence(trace, kernels, limit=2, note="launched by it"),
        ),
        cause=cause,
        fix=fix,
    )


def _title(number: int, long_us: float, longest: str) -> str:
    if number == 1:
        return f"One launch takes {longest}"
    return f"{number:,} launches take more than {long_us:.0f} us, up to {longest}"


def _first_uses(trace: Trace, rows: np.ndarray) -> int:
    """How many of these calls launch a kernel that no call before launched."""
    links = trace.links
    known = links.launch >= 0
    work, launch = links.work[known], links.launch[known]
    order = np.argsort(trace.events.ts[launch], kind="stable")
    _, first = np.unique(trace.events.name[work[order]], return_index=True)
    return int(np.count_nonzero(np.isin(rows, launch[order][first])))
