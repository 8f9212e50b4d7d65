"""The host waits for the device, and the device then for the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.derived.launches import graph_captures
from torchwhy.trace.derived.steady_state import steady_device_window
from torchwhy.trace.derived.waits import Waits, host_waits
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.frames import PRINTING
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.meaning.operators import LOCAL_SCALAR, NUMBER_READ, SIZE_BY_VALUES, TRANSFER
from torchwhy.trace.meaning.runtime import COPY_CALL, EVENT_SYNCHRONIZE, WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["explicit_sync"]

CAUSES: Final[dict[str, tuple[Meaning, str, str]]] = {
    "item": (
        NUMBER_READ | LOCAL_SCALAR,
        "Python reads a number from the device (.item(), float(), bool(), if tensor:) and waits until it is computed.",
        "Keep the number on the device (add to a tensor there) and read it every N steps; torch.where for an `if`.",
    ),
    "shape": (
        SIZE_BY_VALUES,
        "The size of the result depends on the values, so the host waits for the device to count them.",
        "Use operations whose size is known: torch.where, masked_fill or multiplication by the mask; "
        "pass output_size where the operator takes it.",
    ),
    "copy": (
        TRANSFER,
        "A copy between host and device that the host waits for.",
        "Copy with non_blocking=True from and to pinned memory, read results less often, or all at once.",
    ),
}
"""Description, cause and fix, by the operators around the wait."""

CALLS: Final[dict[str, tuple[Meaning, str, str]]] = {
    "copy": (COPY_CALL, *CAUSES["copy"][1:]),
    "event": (
        EVENT_SYNCHRONIZE,
        "The host waits for an event of a stream.",
        "Let the stream wait instead (stream.wait_event(event)), or ask event.query() and go on.",
    ),
    "synchronize": (
        WAIT_FOR_DEVICE,
        "The program calls {call}, such as by torch.cuda.synchronize(), in its loop.",
        "Leave torch.cuda.synchronize() to measurements (torch.cuda.Event times without it); streams keep order.",
    ),
}
"""The same by the waiting call, where no operator is around it."""

_ENOUGH: Final = 5000
"""At most this number of waits is examined, the longest first."""


@rule(
    "B7",
    "explicit-sync",
    source="Nsight Systems' rule on synchronisation calls; 2% of the window",
    needs=("gpu", "idle", "order"),
    frees="host",
)
def explicit_sync(trace: Trace, *, share: float = 0.02) -> Iterator[Finding]:
    """The host waits for the device, which then has nothing to do.

    Sees: synchronising calls (cudaStreamSynchronize, cudaDeviceSynchronize, copies that don't return before they are
    done, ...) within the window, without the profiler's own at the end. Each call counts for the idle time that it
    causes: from the end of the device's work until its next work, and at most the call's own duration. 2% of the
    window.

    Costs: not the wait itself, during which the device works, but that the host begins to launch only when the device
    has nothing left. At stake is the calls' time, at most the device's idle time until the next wait that remains: the
    host would be this far ahead.

    Fix: keep values on the device and read them every N steps; copy with `non_blocking=True` and pinned memory; move
    logging and `torch.cuda.synchronize()` out of the loop.

    Known problems: a wait that comes just before the loop's own end of work is charged although nothing could have been
    launched earlier. Waits while a CUDA graph is captured aren't counted.
    """
    waits = trace.derived(host_waits)
    window = trace.derived(steady_device_window)
    counted = (trace.derived(idle_time) - trace.derived(graph_captures)).clip(window.start, window.end)
    lost = window.share(waits.stalls & counted)
    if not lost or lost < share:
        return
    groups: dict[tuple[str, str], list[int]] = {}
    heavy = np.argsort(-waits.idle, kind="stable")[:_ENOUGH]
    heavy = np.sort(heavy[waits.idle[heavy] > 0])
    for i in heavy.tolist():
        groups.setdefault(_reason(trace, int(waits.rows[i])), []).append(i)
    for (reason, owner), members in groups.items():
        chosen = np.array(members)
        stall = Intervals.union(waits.starts[chosen], waits.ends[chosen]) & counted
        part = window.share(stall)
        if part * 5 >= share and part * 5 >= lost:
            yield _finding(trace, waits, chosen, stall, reason, owner)


def _finding(trace: Trace, waits: Waits, chosen: np.ndarray, stall: Intervals, reason: str, owner: str) -> Finding:
    rows = waits.rows[chosen]
    window = trace.derived(steady_device_window)
    part = window.share(stall)
    seen = evidence(
        trace, rows, times=waits.idle[chosen], note=f"in {owner}" if owner else "outside any operator", limit=5
    )
    if reason == "print":
        cause = "A tensor is printed or logged, for which its values are copied to the host."
        fix = "Print every N steps, and .detach() values to read them together later."
    else:
        _, cause, fix = CAUSES[reason] if reason in CAUSES else CALLS[reason.removeprefix("by ")]
        cause = cause.format(call=seen[0].name)
    inside = f" in {owner}" if owner else ""
    steps = len(trace.steps_found)
    per_step = f", {len(rows) / steps:.1f} per step," if 0 < steps <= len(rows) else ""
    idle = f"{'leaves' if len(rows) == 1 else 'leave'} it idle {percent(part)} of the time"
    return Finding(
        title=f"{counted(len(rows), 'wait')} for the device{inside}{per_step} {idle}"[:120],
        confidence="high",
        stretches=(trace.events.times_of(rows) | _around(trace, rows, reason)).clip(window.start, window.end),
        window=window,
        evidence=seen,
        cause=cause,
        fix=fix,
        linked=True,
    )


def _around(trace: Trace, rows: Int32, reason: str) -> Intervals:
    """The operators that read the numbers waited for: without the wait there is nothing to read."""
    events = trace.events
    reading = events.of(NUMBER_READ) if reason == "item" else rows[:0]
    waits = np.sort(events.ts[rows])
    inside = np.searchsorted(waits, events.end[reading]) > np.searchsorted(waits, events.ts[reading])
    found: Intervals = events.times_of(reading[inside])
    return found


def _reason(trace: Trace, row: int) -> tuple[str, str]:
    """Why the host waits there, and the operator or annotation to name.

    The reason is a key of `CAUSES`, "print", or "by " and a key of `CALLS`: equal calls are counted together.
    """
    events = trace.events
    above = list(trace.ancestors(row))
    operators = [one for one in above if events.kind[one] == Kind.OPERATOR]
    if trace.has_stacks and events.are(PRINTING, list(trace.frames.ancestors(row))).any():
        return "print", trace.name(operators[-1]) if operators else "print"
    for reason, (meaning, _, _) in CAUSES.items():
        if events.are(meaning, operators).any():
            return reason, trace.name(operators[-1])
    notes = [one for one in above if events.kind[one] == Kind.ANNOTATION and not events.are(STEP, [one])[0]]
    owner = operators[-1] if operators else notes[0] if notes else -1
    call = next((name for name, (meaning, _, _) in CALLS.items() if events.are(meaning, [row])[0]), "copy")
    return f"by {call}", trace.name(owner) if owner >= 0 else ""
