"""Long lists of tensors that are joined in every step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import forward_pass
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.operators import BACKWARD, STACK
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["rows_stacked"]

NEAR_NS = 2_000_000
"""How long before a stack its list is made, at most."""


@rule(
    "B40", "rows-stacked", source="`aten::stack` of lists that are too long for their shapes to be kept", frees="host"
)
def rows_stacked(trace: Trace, *, share: float = 0.1, per_step: int = 2, steps: int = 3) -> Iterator[Finding]:
    """Batches are stacked from single rows in the loop.

    Sees: in three steps or more two calls of `aten::stack` or more, each with a list of tensors that is too
    long for PyTorch to record its shapes. They, and the time without operators directly before each, up to 2 ms, take
    10% of the window. On a GPU only the part during which the device waits. The collate function of a DataLoader is
    dataloader-wait's.

    Costs: Python handles each row as a separate object, and PyTorch checks each of them.

    Fix: keep the rows in one tensor from the start (a replay buffer is made with its full size and filled in place) and
    take a batch with one index: `states[rows]`. Tensors that are stacked right after a backward pass are probably
    gradients: `torch._foreach_` functions take their list as it is, and `torch.func.vmap(torch.func.grad(f))` computes
    those of single samples together.

    Known problems: results of a loop, such as of time steps, that are stacked at its end look the same where there are
    many; they are left out where operators run directly before.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    rows = program.rows[events.are(STACK, program.rows)]
    if not trace.derived(recorded).on_processor or not trace.steps_found or not len(rows):
        return
    unknown = [not any(tensor_lists(trace, int(row))) and bool(events.text("Input Dims", int(row))) for row in rows]
    rows = rows[np.array(unknown, np.bool_)]
    counts = np.unique(trace.step_of(rows), return_counts=True)[1]
    if len(counts) < steps or float(np.median(counts)) < per_step:
        return
    ends = np.sort(events.end[program.rows])
    place = np.searchsorted(ends, events.ts[rows], "right") - 1
    before = np.where(place >= 0, ends[np.maximum(place, 0)], events.ts[rows])
    starts = np.maximum(before, events.ts[rows] - NEAR_NS)
    when = Intervals.union(starts, events.end[rows]).clip(window.start, window.end)
    part = window.share(at_stake(trace, when))
    if part < share:
        return
    gradients = 2 * np.count_nonzero(_after_backward(trace, rows)) > len(rows)
    yield Finding(
        title=f"{int(np.median(counts))} {'lists of gradients' if gradients else 'batches'} per step are stacked from "
        f"single {'tensors' if gradients else 'rows'}: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Long lists of small tensors are gathered in Python and joined by torch.stack in every step.",
        fix="Leave the gradients in their list: torch._foreach_norm and similar operators take lists; "
        "torch.func.vmap(torch.func.grad(f)) computes those of single samples together."
        if gradients
        else "Keep the rows in one preallocated tensor, filled in place; take a batch with one index: states[rows].",
    )


def _after_backward(trace: Trace, rows: Int32) -> Flags:
    """Whether the last outermost operator that ends before each is a node of the backward pass."""
    events, outer = trace.events, trace.derived(outer_operators)
    outer = outer[np.argsort(events.end[outer], kind="stable")]
    outer = outer[~events.are(STACK, outer)]
    place = np.searchsorted(events.end[outer], events.ts[rows], "right") - 1
    found: Flags = (place >= 0) & events.are(BACKWARD, outer[np.maximum(place, 0)]) if len(outer) else place >= 0
    return found
