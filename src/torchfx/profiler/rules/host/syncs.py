"""The host waits for the device, and the device then for the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.gaps import device_window
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.waits import Waits, host_waits
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent

__all__ = ["explicit_sync"]

CAUSES: Final[dict[str, tuple[str, str, str]]] = {
    "item": (
        r"aten::(item|_local_scalar_dense|is_nonzero|equal|allclose)$",
        "Python reads a number from the device (.item(), float(), bool(), if tensor:) and waits until it is computed.",
        "Keep the number on the device (add to a tensor there) and read it every N steps; torch.where for an `if`.",
    ),
    "shape": (
        r"aten::(nonzero|masked_select|unique|_unique2|unique_dim|unique_consecutive|repeat_interleave|bincount)"
        r"|aten::(index|index_put_?|_index_put_impl_)$",
        "The size of the result depends on the values, so the host waits for the device to count them.",
        "Use operations whose size is known: torch.where, masked_fill or multiplication by the mask; "
        "pass output_size where the operator takes it.",
    ),
    "copy": (
        r"aten::(_to_copy|to|copy_|cpu|_copy_from.*|cuda|pin_memory)$",
        "A copy between host and device that the host waits for.",
        "Copy with non_blocking=True from and to pinned memory, read results less often, or all at once.",
    ),
}
"""By what an operator around the wait is called: pattern, cause, fix."""

_ENOUGH: Final = 5000
"""So many of the heaviest waits are looked at."""

PRINTING: Final = r".*(_tensor_str\.py|<built-in function print>|logging/__init__\.py)"


@rule(
    "B7",
    "explicit-sync",
    source="Nsight Systems' rule on synchronisation calls; 5% of the window",
    needs=("gpu", "idle", "order"),
)
def explicit_sync(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The host waits for the device, which then has nothing to do.

    Sees: synchronising calls (cudaStreamSynchronize, cudaDeviceSynchronize, copies that don't return before they are
    done, ...) within the window, without the profiler's own at the end. Of each counts the idle time it is answerable
    for: from the device running dry until its next work, and no more than the call's own duration. 5% of the window.

    Costs: not the wait itself, during which the device works, but that the host begins to launch only when the device
    has nothing left.

    Fix: keep values on the device and read them every N steps; copy with `non_blocking=True` and pinned memory; move
    logging and `torch.cuda.synchronize()` out of the loop.
    """
    waits = trace.derived(host_waits)
    window = device_window(trace)
    length = window.end - window.start
    if waits.stalls.total < share * length or not length:
        return
    groups: dict[tuple[str, str], list[int]] = {}
    heavy = np.argsort(-waits.idle, kind="stable")[:_ENOUGH]
    heavy = np.sort(heavy[waits.idle[heavy] > 0])
    for i in heavy.tolist():
        groups.setdefault(_reason(trace, int(waits.rows[i])), []).append(i)
    for (reason, owner), members in groups.items():
        chosen = np.array(members)
        if int(waits.idle[chosen].sum()) * 5 < share * length:  # no less than the union, which takes longer to find
            continue
        stall = Intervals.union(waits.starts[chosen], waits.ends[chosen]) & trace.derived(idle_time)
        if stall.total * 5 < share * length or stall.total * 5 < waits.stalls.total:
            continue
        yield _finding(trace, waits, chosen, stall.total, reason, owner)


def _finding(trace: Trace, waits: Waits, chosen: np.ndarray, stall: int, reason: str, owner: str) -> Finding:
    rows = waits.rows[chosen]
    window = device_window(trace)
    length = window.end - window.start
    call = trace.name(int(rows[0]))
    if reason in CAUSES:
        _, cause, fix = CAUSES[reason]
    elif reason == "print":
        cause = "A tensor is printed or logged, for which its values are copied to the host."
        fix = "Print every N steps, and .detach() values to read them together later."
    elif "Memcpy" in call:
        _, cause, fix = CAUSES["copy"]
    elif "Event" in call:
        cause = "The host waits for an event of a stream."
        fix = "Let the stream wait instead (stream.wait_event(event)), or ask event.query() and go on."
    else:
        cause = f"The program calls {call}, such as by torch.cuda.synchronize(), in its loop."
        fix = "Leave torch.cuda.synchronize() to measurements (torch.cuda.Event times without it); streams keep order."
    inside = f" in {owner}" if owner else ""
    steps = len(trace.steps_found)
    per_step = f", {len(rows) / steps:.1f} per step" if 0 < steps <= len(rows) else ""
    idle = f"leave it idle {percent(stall / length)} of the time"
    return Finding(
        title=f"{len(rows):,} waits for the device{inside}{per_step} {idle}"[:120],
        severity=severity_of(stall / length),
        confidence="high",
        time_us=stall / 1000,
        window=trace.window,
        evidence=evidence(
            trace, rows, times=waits.idle[chosen], note=f"in {owner}" if owner else "outside any operator"
        ),
        cause=cause,
        fix=fix,
        linked=True,
    )


def _reason(trace: Trace, row: int) -> tuple[str, str]:
    """Why the host waits there: a key of `CAUSES`, "print" or "", and the operator or annotation to name."""
    events = trace.events
    operators = [above for above in trace.ancestors(row) if events.kind[above] == Kind.OPERATOR]
    notes = [above for above in trace.ancestors(row) if events.kind[above] == Kind.ANNOTATION]
    if trace.has_stacks and any(events.names_matching(PRINTING)[events.name[frame]] for frame in _frames(trace, row)):
        return "print", trace.name(operators[-1]) if operators else "print"
    for reason, (pattern, _, _) in CAUSES.items():
        matches = events.names_matching(pattern)
        if any(matches[events.name[above]] for above in operators):
            return reason, trace.name(operators[-1])
    named = [above for above in notes if not trace.name(above).startswith("ProfilerStep")]
    owner = operators[-1] if operators else named[0] if named else -1
    return "", trace.name(owner) if owner >= 0 else ""


def _frames(trace: Trace, row: int) -> list[int]:
    return [above for above in trace.frames.ancestors(row) if trace.events.kind[above] == Kind.PYTHON]
