"""How much is copied within the device's memory, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.compute.kernels import caveat
from torchwhy.rules.copies.transfers import step_count, transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT
from torchwhy.trace.meaning.tensors import CHANGE_OF_TYPE, CONCATENATE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, size_text

__all__ = ["dtod_volume"]


@rule(
    "C9",
    "dtod-volume",
    source="copies within the device's memory, as in Holistic Trace Analysis: 3% of the window, or 1 GB per step",
    needs={"gpu"},
    frees="device",
)
def dtod_volume(trace: Trace, *, share: float = 0.03, bytes_per_step: float = 1e9) -> Iterator[Finding]:
    """Much time goes to copies within the device's memory.

    Sees: `Memcpy DtoD` and PyTorch's copy and concatenation kernels, in 3% of the window or more, or 1 GB of `Memcpy
    DtoD` per step if that takes 2%. Changes of type (`aten::to`) aren't counted.

    Costs: memory traffic that computes nothing.

    Fix: find the operator in the evidence: `contiguous` after a permutation (choose the layout once), `cat` in a loop
    (write into a tensor allocated once), `expand` or `repeat` (broadcast instead).

    Known problems: kernels are known as copies by their names; a library's own copying kernels with other names are
    missed, and a copy that is the purpose of the program counts.
    """
    events, copies, kernels = trace.events, trace.derived(transfers), trace.derived(kernels_of)
    within = copies.way("DtoD")
    copying = kernels.that(lambda name: name.operation == "copy" and not name.casts)
    copying &= ~_casts(trace, kernels.operator)
    rows = np.concatenate((copies.rows[within], kernels.rows[copying])).astype(np.int32)
    operator = np.concatenate((copies.operator[within], kernels.operator[copying]))
    when = trace.when(rows)
    time_us = when.total / 1000
    per_step = int(copies.bytes[within].sum()) / step_count(trace)
    part = time_us / trace.window.us if trace.window.us else 0.0
    if part < share and not (per_step >= bytes_per_step and 3 * part >= 2 * share):
        return
    moved = f", {size_text(per_step)} per step" if per_step >= 1e6 and trace.steps_found else ""
    yield Finding(
        title=f"Copies within the device's memory take {percent(part)} of the time{moved}",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=_by_operator(trace, rows, operator) or evidence(trace, rows),
        cause=f"{'The operators in the evidence' if (operator >= 0).any() else 'These kernels and copies'} write "
        "data that are in memory already to another place or layout." + caveat(trace),
        fix=_fewer(trace, operator),
        linked=bool((operator >= 0).any()) and bool(len(events)),
    )


def _fewer(trace: Trace, operator: Int32) -> str:
    """Advice by the operators that copy."""
    events = trace.events
    outer = [trace.calls.outermost(row, Kind.OPERATOR) for row in np.unique(operator[operator >= 0]).tolist()]
    advice = []
    if events.are(ACCUMULATE_GRADIENT, outer).any() and len(trace.gpu.communication):
        advice.append(
            "gradient_as_bucket_view=True in DistributedDataParallel leaves out copies between gradients and buckets"
        )
    if events.are(CONCATENATE, outer).any():
        advice.append("write into a tensor allocated once instead of concatenating")
    advice.append("choose one layout instead of permuting and contiguous(), broadcast instead of repeating")
    text = "; ".join(advice) + "."
    return text[0].upper() + text[1:] if not text.startswith("gradient_as") else text


def _casts(trace: Trace, operator: Int32) -> Flags:
    """Whether operators lie within a change of type or device."""
    changing = np.zeros(len(trace.events), np.bool_)
    changing[trace.events.of(CHANGE_OF_TYPE)] = True
    around = np.append(trace.calls.nearest(changing), np.int32(-1))
    found: Flags = around[operator] >= 0  # the last entry answers for "no operator"
    return found


def _by_operator(trace: Trace, rows: Int32, operator: Int32) -> tuple[Evidence, ...]:
    """Device time by the outermost aten operator that led to each copy."""
    known = operator >= 0
    distinct, which = np.unique(operator[known], return_inverse=True)
    outer = np.array([trace.calls.outermost(row, Kind.OPERATOR) for row in distinct.tolist()], np.int32)
    if not len(outer):
        return ()
    spent = np.bincount(which.reshape(-1), weights=trace.events.dur[rows[known]])
    calls, again = np.unique(outer, return_inverse=True)
    times = np.bincount(again.reshape(-1), weights=spent).astype(np.int64)
    return evidence(trace, calls, times=times, note="device time of its copies")
