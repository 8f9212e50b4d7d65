"""Attention computed in pieces instead of by one kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding, severity_of
from torchwhy.rules.compute.kernels import caveat, kernels_of, matters, rank, shown
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.shapes import dtypes, shapes
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import (
    ATTENTION_IN_PARTS,
    ATTENTION_STAGE,
    BATCHED_PRODUCT,
    DROPOUT,
    NATIVE_ATTENTION,
    SOFTMAX,
)
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["sdpa_math_backend", "unfused_attention"]


@rule(
    "D8",
    "unfused-attention",
    source="a batched product, softmax and batched product in a row; 5% of the window's work",
    frees="device",
)
def unfused_attention(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Attention is computed step by step, its matrix of weights written to memory.

    Sees: `aten::bmm`, `aten::_softmax`, `aten::bmm` in a row on a thread, no other matrix product in between, from 5%
    of the kernels' time on (of the window on a machine without GPU); with their backward pass, where sequence numbers
    or arrows tell it. What `F.scaled_dot_product_attention` does itself
    belongs to sdpa-math-backend.

    Costs: the weights, heads times length squared, are written and read several times; memory grows with the square of
    the length.

    Fix: `F.scaled_dot_product_attention(q, k, v)`, with `is_causal=True` instead of a mask where that is meant.

    Known problems: a product, softmax and product that aren't attention look alike; a mask or bias between them may be
    one that no fused kernel knows.
    """
    events = trace.events
    rows = events.of(ATTENTION_STAGE)
    rows = rows[np.argsort(events.lane[rows], kind="stable")]
    if len(rows) < 3:
        return
    product, soft = events.are(BATCHED_PRODUCT, rows), events.are(SOFTMAX, rows)
    lane = events.lane[rows]
    first = (
        np.flatnonzero(product[:-2] & soft[1:-1] & product[2:] & (lane[:-2] == lane[2:]))
        if len(rows) > 2
        else np.zeros(0, np.int64)
    )
    spans = [(int(rows[i]), int(rows[i + 1]), int(rows[i + 2])) for i in first.tolist()]
    spans = [span for span in spans if not events.are(ATTENTION_IN_PARTS, [*trace.ancestors(span[1])]).any()]
    spans = [span for span in spans if trace.in_steps(np.array(span[:1], np.int32))[0]]
    if not spans:
        return
    when, part, found = _cost(trace, [(a, c) for a, _, c in spans])
    time_us = when.total / 1000
    if part < share or not matters(trace, time_us, 0.005):
        return
    native = bool(events.are(NATIVE_ATTENTION, [*trace.ancestors(spans[0][1])]).any())
    whole = "of the kernels' time" if trace.has_gpu else "of the time"
    yield Finding(
        title=f"Attention is computed in pieces {len(spans)} times: {percent(part)} {whole}",
        severity=rank(trace, time_us) if trace.has_gpu else severity_of(part),
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=found,
        cause="Products and softmax are separate operators, so the matrix of weights goes to memory and back."
        + (" They come from the fast path of nn.MultiheadAttention." if native else "")
        + (caveat(trace) if trace.has_gpu else ""),
        fix="Compute it with F.scaled_dot_product_attention"
        + (
            " in the model itself, or switch the fast path off (torch.backends.mha.set_fastpath_enabled(False)): "
            "nn.MultiheadAttention then uses it with need_weights=False."
            if native
            else '; for models of a library choose its sdpa implementation (attn_implementation="sdpa").'
        ),
        linked=True,
    )


@rule(
    "D9",
    "sdpa-math-backend",
    source="`aten::_scaled_dot_product_attention_math` in the trace; 5% of the window's work",
    frees="device",
)
def sdpa_math_backend(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Scaled dot-product attention falls back to its plain implementation.

    Sees: `aten::_scaled_dot_product_attention_math`, from 5% of the kernels' time on (of the window without a GPU).

    Costs: about ten kernels instead of one, and the matrix of weights in memory.

    Fix: the fused kernels want 16-bit inputs, a head dimension up to 256 that is a multiple of 8, and no mask (or one
    they know); on the CPU they take float32 as well, but no dropout.
    `with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION]):` warns with the reason.

    Known problems: the trace holds no reason for the fall-back; what is said comes from shapes and types alone.
    """
    rows = trace.events.of(ATTENTION_IN_PARTS)
    rows = rows[trace.in_steps(rows)]
    if not len(rows):
        return
    when, part, found = _cost(trace, [(row, row) for row in rows.tolist()])
    time_us = when.total / 1000
    if part < share or not matters(trace, time_us, 0.005):
        return
    reasons = _reasons(trace, rows)
    whole = "of the kernels' time" if trace.has_gpu else "of the time"
    yield Finding(
        title=f"Attention falls back to its plain implementation {len(rows)} times: {percent(part)} {whole}",
        severity=rank(trace, time_us) if trace.has_gpu else severity_of(part),
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=(*evidence(trace, rows, limit=2), *found[:3]) if trace.has_gpu else found,
        cause=(" ".join(reasons) or "No fused kernel accepted the inputs; the trace doesn't tell why.")
        + (caveat(trace) if trace.has_gpu else ""),
        fix=(
            "Give it 16-bit inputs with a head dimension that is a multiple of 8 (up to 256), is_causal instead of a "
            "mask; "
            if trace.has_gpu
            else "On the CPU the fused implementation takes float32 too, but no dropout (dropout_p=0: attention's own, "
            "the layers' may stay) and only inputs contiguous in their last dimension; "
        )
        + "sdpa_kernel([SDPBackend.FLASH_ATTENTION]) around the call warns with the reason it can't be used.",
        linked=True,
    )


def _cost(trace: Trace, spans: list[tuple[int, int]]) -> tuple[Intervals, float, tuple[Evidence, ...]]:
    """Time, share and evidence of what happens from the start of one operator to the end of another, and of what that
    becomes in the backward pass."""
    events = trace.events
    starts, ends = [int(events.ts[a]) for a, _ in spans], [int(events.end[c]) for _, c in spans]
    within = Intervals.union(starts, ends)
    nodes = _backward(trace, within, events.lane[[a for a, _ in spans]])
    lanes = np.append(events.lane[[a for a, _ in spans]], events.lane[nodes])
    within = within | events.times_of(nodes)
    if not trace.has_gpu:
        rows = np.array(sorted({row for span in spans for row in span} | {*nodes.tolist()}), np.int32)
        inside = within.clip(trace.window.start, trace.window.end)
        return inside, trace.window.share(inside), evidence(trace, rows)
    kernels = trace.derived(kernels_of)
    launch = trace.links.of(kernels.rows)
    chosen = launch >= 0
    if chosen.any():
        at = events.ts[launch]
        chosen &= within.overlap(at, at + 1) > 0
        chosen &= np.isin(events.lane[launch], lanes)
    rows = kernels.rows[chosen]
    return trace.when(rows), kernels.share(chosen), shown(trace, rows)


def _backward(trace: Trace, within: Intervals, lanes: Int32) -> Int32:
    """The nodes of the backward pass that operators of these lanes within these stretches made: by their numbers."""
    pairs, ts = trace.derived(autograd), trace.events.ts
    made = (within.overlap(ts[pairs.forward], ts[pairs.forward] + 1) > 0) & np.isin(
        trace.events.lane[pairs.forward], lanes
    )
    found: Int32 = pairs.backward[made]
    return found[trace.in_steps(found)]


def _reasons(trace: Trace, rows: Int32) -> list[str]:
    """What of the inputs keeps the fused kernels away, as far as shapes and types tell."""
    row = int(rows[0])
    kinds, sizes = dtypes(trace, row)[:3], shapes(trace, row)
    found = []
    if not trace.has_gpu:
        events, tree = trace.events, trace.calls
        inside, attention = events.of(DROPOUT), np.zeros(len(events), np.bool_)
        attention[events.of(ATTENTION_IN_PARTS)] = True
        if len(inside) and (tree.nearest(attention)[inside] >= 0).any():
            found.append("It drops out weights (dropout_p), which the fused implementation on the CPU can't.")
        if sizes and len(sizes) > 2 and sizes[0][-1] != sizes[2][-1]:
            found.append(f"Query and value have {sizes[0][-1]} and {sizes[2][-1]} features.")
        return found
    if kinds and kinds[0] in ("float32", "float64"):
        found.append(f"Inputs are {kinds[0]}, which FlashAttention doesn't take.")
    if sizes and (sizes[0][-1] % 8 or sizes[0][-1] > 256):
        found.append(f"The head dimension is {sizes[0][-1]}.")
    if len(sizes) > 3:
        found.append(f"A mask of shape {sizes[3]} is given.")
    return found
