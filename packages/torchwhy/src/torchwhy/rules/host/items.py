"""Python reads numbers out of tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.syncs import explicit_sync
from torchwhy.rules.host.tensor_loops import tensor_loops
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.launches import device_known
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.derived.waits import host_waits
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.operators import LOCAL_SCALAR, NUMBER_READ
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["item_per_step"]


@rule("B8", "item-per-step", source="aten::item as a habit of training loops; more than one per step", frees="host")
def item_per_step(
    trace: Trace, *, per_step: float = 1.0, on_cpu: float = 100.0, share: float = 0.01, loop: float = 0.05
) -> Iterator[Finding]:
    """Python reads numbers out of tensors in every step.

    Sees: more than one `aten::item` (or `is_nonzero`, `equal`) per step within which the host waits for the device,
    where explicit-sync doesn't name these waits already. Reading a tensor that lies on the CPU is cheap: it counts at
    100 or more per step with 1% of the window, or where a loop that reads number after number takes 5%, and not within
    another operator.

    Costs: each makes the host wait until the device has finished everything before it. On the CPU: Python and an
    operator or two for every single number.

    Fix: add up on the device (`total += loss.detach()`) and read every N steps; several numbers in one
    `torch.stack(...).tolist()`.

    Known problems: what Python does with the numbers isn't recorded, so the loop's time counts as a whole.
    """
    # Where nothing is known of rounds, the whole trace stands for 20 of them.
    steps, per = (len(trace.steps_found), " per step") if trace.steps_found else (20, "")
    shown = steps if per else 1
    rows = trace.events.of(NUMBER_READ)
    if not len(rows):  # each item() has one inside; both would count twice where times are whole microseconds
        rows = trace.events.of(LOCAL_SCALAR)
    rows = rows[trace.in_steps(rows)]
    texts = trace.derived(tensor_texts).spans
    rows = rows[trace.events.covered(rows, texts) == 0]
    waiting, waits = _waiting(trace, rows)
    called = trace.derived(outer_operators)  # unique() reads numbers itself
    free = np.intersect1d(np.setdiff1d(_outermost(trace, rows), waiting), called)
    if len(waiting) > per_step * steps and not np.isin(waits, _reported(trace)).any():
        yield Finding(
            title=f"{len(waiting) / shown:,.0f} numbers{per} are read out of tensors; each waits for the device",
            confidence="high",
            stretches=trace.when(waiting),
            window=trace.window,
            evidence=evidence(trace, waiting),
            cause=(
                ".item(), float(), bool() or `if tensor:` needs the value, so the host waits until the device has "
                "computed it."
            ),
            fix="Add up on the device and read every N steps, several numbers with one .tolist().",
            linked=True,
        )
    loops, window = trace.derived(tensor_loops), trace.derived(steady_window)
    reading = loops.within(trace, reads=True).clip(window.start, window.end)
    known = not trace.has_gpu or trace.derived(device_known)
    part = window.share(at_stake(trace, reading)) if known else 0.0
    taken = trace.events.times_of(free).clip(window.start, window.end)
    if len(free) and part >= loop:
        rounds = int(loops.rounds[loops.reads].sum())
        yield Finding(
            title=f"A loop reads {rounds / shown:,.0f} single numbers{per} out of tensors, {percent(part)} of the time",
            confidence="high",
            stretches=reading,
            window=window,
            evidence=evidence(trace, free),
            cause="Python reads a tensor's elements one by one; each is read by separate operators.",
            fix="Read all values at once with .tolist(), or compute on whole tensors (comparisons, torch.where, "
            "torch.bincount).",
            linked=True,
        )
    elif len(free) > on_cpu * steps and window.share(at_stake(trace, taken)) >= share:
        yield Finding(
            title=f"{len(free) / shown:,.0f} numbers{per} are read out of tensors on the CPU, without waiting",
            confidence="high",
            stretches=taken,
            window=window,
            evidence=evidence(trace, free),
            cause="Python reads values one by one; each costs about as much as a small operator.",
            fix="Read many values at once with .tolist(), or compute on whole tensors.",
            linked=True,
        )


def _reported(trace: Trace) -> Int32:
    """The waits that explicit-sync names."""
    items = [item.rows for finding in explicit_sync.check(trace) for item in finding.evidence]
    return np.concatenate([np.empty(0, np.int32), *items])


def _outermost(trace: Trace, rows: Int32) -> Int32:
    """Those of the operators that aren't inside another of them."""
    inner = np.isin(trace.calls.parent[rows], rows)
    return rows[~inner]


def _waiting(trace: Trace, rows: Int32) -> tuple[Int32, Int32]:
    """The operators in which a call waits for the device, and these calls."""
    waits = trace.derived(host_waits).rows
    wanted = np.zeros(len(trace.events), np.bool_)
    wanted[_outermost(trace, rows)] = True
    owners, calls = [], []
    for row in waits.tolist():
        owner = next((above for above in trace.ancestors(row) if wanted[above]), -1)
        if owner >= 0:
            owners.append(owner)
            calls.append(row)
    return np.unique(np.array(owners, np.int32)), np.array(calls, np.int32)
