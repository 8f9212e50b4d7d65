"""Attention computed in pieces instead of by one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.compute.kernels import caveat, matters, shown, with_calls
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.device_peaks import used_peaks
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.derived.roofline import roofline_groups
from torchwhy.trace.derived.shapes import dtypes, shapes
from torchwhy.trace.file.columns import Flags, Int32
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
from torchwhy.wording import often, percent

__all__ = ["pieces_of_attention", "sdpa_math_backend", "unfused_attention"]

LONG: Final = 1024
"""Keys from which on nn.MultiheadAttention's fast path, which computes in pieces, is slower on a processor. Measured on
nn.TransformerEncoderLayer in float32 with one thread, times relative to those without the fast path: 0.65 to 0.97 with
16 to 128 keys, 1.06 with 256, 1.00 with 512 and 1.57 with 1024."""


@dataclass(frozen=True)
class Pieces:
    """Attention that the program computes step by step.

    Attributes:
        spans: first product, softmax, last product of each: rows of operators.
        rows: the kernels of those and of their backward pass; of a machine without GPU the operators.
    """

    spans: tuple[tuple[int, int, int], ...]
    rows: Int32


def pieces_of_attention(trace: Trace) -> Pieces:
    """A batched product, softmax and batched product in a row on a thread, no other matrix product in between."""
    events = trace.events
    rows = events.of(ATTENTION_STAGE)
    rows = rows[np.argsort(events.lane[rows], kind="stable")]
    if len(rows) < 3:
        return Pieces((), np.empty(0, np.int32))
    product, soft, lane = events.are(BATCHED_PRODUCT, rows), events.are(SOFTMAX, rows), events.lane[rows]
    first = np.flatnonzero(product[:-2] & soft[1:-1] & product[2:] & (lane[:-2] == lane[2:]))
    spans = [(int(rows[i]), int(rows[i + 1]), int(rows[i + 2])) for i in first.tolist()]
    spans = [span for span in spans if not events.are(ATTENTION_IN_PARTS, [*trace.ancestors(span[1])]).any()]
    spans = [span for span in spans if trace.in_steps(np.array(span[:1], np.int32))[0]]
    return Pieces(tuple(spans), _work_of(trace, [(a, c) for a, _, c in spans]))


@rule(
    "D8",
    "unfused-attention",
    source="a batched product, softmax and batched product in a row; 5% of the window's work",
    frees="all",
)
def unfused_attention(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Attention is computed step by step, its matrix of weights written to memory.

    Sees: `aten::bmm`, `aten::_softmax`, `aten::bmm` in a row on a thread, no other matrix product in between, if
    they take at least 5% of the kernels' time (of the window on a machine without GPU); with their backward pass, where
    sequence numbers or arrows show it. What `F.scaled_dot_product_attention` does itself belongs to sdpa-math-backend.

    Costs: the weights, heads times length squared, are written and read several times; memory grows with the square of
    the length. At stake is the time beyond both products at the device's peak, if shapes and peaks are known; else all
    but half of the products' time. On a processor all of the time is.

    Fix: `F.scaled_dot_product_attention(q, k, v)`, with `is_causal=True` instead of a causal mask.

    Known problems: a product, softmax and product that aren't attention look alike; a mask or bias between them may be
    one that no fused kernel knows. On the CPU the fused implementation has no dropout: attention that drops out
    weights there is left alone, and so is the fast path of `nn.MultiheadAttention` with less than 1024 keys, where it
    is as fast.
    """
    events, pieces = trace.events, trace.derived(pieces_of_attention)
    dropped = not trace.has_gpu and _drops_out(trace, pieces.spans)
    if not pieces.spans or dropped:
        return
    when = _when(trace, [(a, c) for a, _, c in pieces.spans], pieces.rows)
    part = _share(trace, pieces.rows, when)
    if part < share or not matters(trace, when.total / 1000, 0.005):
        return
    count, backward = len(pieces.spans), len(_backward_of(trace, [(a, c) for a, _, c in pieces.spans]))
    native = bool(events.are(NATIVE_ATTENTION, [*trace.ancestors(pieces.spans[0][1])]).any())
    if native and not trace.has_gpu and _most_keys(trace, pieces.spans) < LONG:
        return
    whole = "of the compute kernels' time" if trace.has_gpu else "of the time"
    time_us = _saved(trace, pieces.rows) * when.total / 1000
    if trace.has_gpu:  # one kernel remains of each, and one or two of its backward pass
        calls = max(1 - (count + 2 * backward) / len(pieces.rows), 0.0)
        time_us, when = with_calls(trace, pieces.rows, when, _saved(trace, pieces.rows), calls)
    yield Finding(
        title=f"Attention is computed in pieces {often(count)}: {percent(part)} {whole}"
        + (", with its backward pass" if backward else ""),
        confidence="high",
        time_us=time_us,
        stretches=when,
        window=trace.window,
        evidence=shown(trace, pieces.rows) if trace.has_gpu else _calls_first(trace, pieces),
        cause="Products and softmax are separate operators, so the matrix of weights goes to memory and back."
        + (" They come from the fast path of nn.MultiheadAttention." if native else "")
        + (caveat(trace) if trace.has_gpu else ""),
        fix="Compute it with F.scaled_dot_product_attention"
        + (
            " in the model itself, or switch the fast path off (torch.backends.mha.set_fastpath_enabled(False)): "
            "nn.MultiheadAttention then uses it with need_weights=False."
            if native
            else "; nn.MultiheadAttention uses it with need_weights=False, models of a library with "
            'attn_implementation="sdpa".'
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

    Sees: `aten::_scaled_dot_product_attention_math` in 5% of the kernels' time or more (of the window without a GPU).

    Costs: about ten kernels instead of one, and the matrix of weights in memory. At stake is the time beyond both
    products at the device's peak, where shapes and peaks show it; else all but half of the products' time. Dropout of
    the weights on the CPU isn't counted: it costs as much wherever it is done. A model that drops weights out has
    chosen to, so there severity is low. On the CPU a mask that requires gradients, such as a learned bias, has no fused
    implementation: where a mask of numbers is given in training, the finding is only good to know.

    Fix: the fused kernels want 16-bit inputs, a head dimension up to 256 that is a multiple of 8, and no mask (or one
    they know); on the CPU they take float32 as well, but no dropout.
    `with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION]):` warns with the reason.

    Known problems: the trace holds no reason for the fall-back: the cause is inferred from shapes and types.
    """
    rows = trace.events.of(ATTENTION_IN_PARTS)
    rows = rows[trace.in_steps(rows)]
    if not len(rows):
        return
    work = _work_of(trace, [(row, row) for row in rows.tolist()])
    when = _when(trace, [(row, row) for row in rows.tolist()], work)
    if not trace.has_gpu:
        dropout = trace.events.of(DROPOUT)
        when = when - trace.when(dropout[_inside(trace, dropout)])
    part = _share(trace, work, when)
    if part < share or not matters(trace, when.total / 1000, 0.005):
        return
    reasons = _reasons(trace, rows)
    wanted = not trace.has_gpu and bool(_inside(trace, dropout).any())
    whole = "of the compute kernels' time" if trace.has_gpu else "of the time"
    yield Finding(
        title=f"Attention falls back to its plain implementation {often(len(rows))}: {percent(part)} {whole}",
        severity="info" if not trace.has_gpu and not wanted and _may_be_learned(trace, int(rows[0])) else "",
        most="low" if wanted else "high",
        confidence="high",
        time_us=_saved(trace, work) * when.total / 1000,
        stretches=when,
        window=trace.window,
        evidence=(*evidence(trace, rows, limit=2), *(shown(trace, work)[:3] if trace.has_gpu else ())),
        cause=(" ".join(reasons) or "No fused kernel accepted the inputs; the trace doesn't show why.")
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


def _work_of(trace: Trace, spans: Sequence[tuple[int, int]]) -> Int32:
    """The kernels launched from the start of one operator to the end of another, and in what that becomes in the
    backward pass; on a machine without GPU the operators."""
    events = trace.events
    if not spans:
        return np.empty(0, np.int32)
    nodes = _backward_of(trace, spans)
    if not trace.has_gpu:
        return np.array(sorted({row for span in spans for row in span} | {*nodes.tolist()}), np.int32)
    within = _within(trace, spans) | events.times_of(nodes)
    lanes = np.append(events.lane[[a for a, _ in spans]], events.lane[nodes])
    kernels = trace.derived(kernels_of)
    launch = trace.links.of(kernels.rows)
    at = events.ts[np.maximum(launch, 0)]
    chosen = (launch >= 0) & (within.overlap(at, at + 1) > 0) & np.isin(events.lane[np.maximum(launch, 0)], lanes)
    found: Int32 = kernels.rows[chosen]
    return found


def _calls_first(trace: Trace, pieces: Pieces) -> tuple[Evidence, ...]:
    """The program's operators before the backward pass, whose line is loss.backward()."""
    calls = np.unique(np.array(pieces.spans, np.int32))
    return (*evidence(trace, calls), *evidence(trace, np.setdiff1d(pieces.rows, calls), limit=3))


def _within(trace: Trace, spans: Sequence[tuple[int, int]]) -> Intervals:
    events = trace.events
    return Intervals.union([int(events.ts[a]) for a, _ in spans], [int(events.end[c]) for _, c in spans])


def _backward_of(trace: Trace, spans: Sequence[tuple[int, int]]) -> Int32:
    """The nodes of the backward pass that the operators within these spans made: by their numbers."""
    pairs, events, within = trace.derived(autograd), trace.events, _within(trace, spans)
    ts, lanes = events.ts[pairs.forward], events.lane[[a for a, _ in spans]]
    made = (within.overlap(ts, ts + 1) > 0) & np.isin(events.lane[pairs.forward], lanes)
    found: Int32 = pairs.backward[made]
    return found[trace.in_steps(found)]


def _when(trace: Trace, spans: Sequence[tuple[int, int]], rows: Int32) -> Intervals:
    """When some work takes place; without a GPU from the start of each span to its end, and its backward pass."""
    if trace.has_gpu:
        return trace.when(rows)
    return _within(trace, spans).clip(trace.window.start, trace.window.end) | trace.when(rows)


def _share(trace: Trace, rows: Int32, when: Intervals) -> float:
    """The part of the kernels' time that some take; without a GPU the part of the window."""
    if not trace.has_gpu:
        return trace.window.share(when)
    kernels = trace.derived(kernels_of)
    return kernels.share(np.isin(kernels.rows, rows))


def _saved(trace: Trace, rows: Int32) -> float:
    """The part of the time of attention in pieces that one kernel saves: it still has both products to compute."""
    if not trace.has_gpu:
        return 1.0
    kernels, peaks = trace.derived(kernels_of), used_peaks(trace)
    own = np.isin(kernels.rows, rows)
    spent = int(kernels.spent[own].sum())
    groups = [group for group in trace.derived(roofline_groups) if np.isin(group.kernels, rows).all()]
    products = own & kernels.that(lambda name: name.operation == "matmul")
    known = [group for group in groups if group.work and peaks and peaks.flops(group.dtype)]
    if not spent:
        return 0.0
    judged = sum(np.count_nonzero(np.isin(kernels.rows[products], group.kernels)) for group in known)
    if peaks and judged == np.count_nonzero(products):
        needed = sum(group.work / peaks.flops(group.dtype) * 1e9 for group in known)
        return max(1 - needed / spent, 0.0)
    return 1 - int(kernels.spent[products].sum()) / 2 / spent


def _most_keys(trace: Trace, spans: Sequence[tuple[int, int, int]]) -> int:
    """Return over how many keys a softmax goes at most; 0 without shapes."""
    taken = [shapes(trace, soft)[:1] for _, soft, _ in spans]
    return max((sizes[0][-1] for sizes in taken if sizes and sizes[0]), default=0)


def _drops_out(trace: Trace, spans: Sequence[tuple[int, int, int]]) -> bool:
    """Whether weights are dropped out between softmax and the last product."""
    events = trace.events
    between = Intervals.union([int(events.end[b]) for _, b, _ in spans], [int(events.ts[c]) for _, _, c in spans])
    rows = events.of(DROPOUT)
    return bool((between.overlap(events.ts[rows], events.end[rows]) > 0).any())


def _inside(trace: Trace, rows: Int32) -> Flags:
    """Whether operators lie within attention's plain implementation."""
    return trace.calls.within(rows, trace.events.of(ATTENTION_IN_PARTS))


def _may_be_learned(trace: Trace, row: int) -> bool:
    """Whether the mask of attention in a forward pass has numbers, which may require gradients."""
    sizes, kinds = shapes(trace, row), dtypes(trace, row)
    return (
        len(sizes) > 3 and len(sizes[3]) > 0 and kinds[3:4] != ["bool"] and len(_backward_of(trace, [(row, row)])) > 0
    )


def _reasons(trace: Trace, rows: Int32) -> list[str]:
    """Which shapes or types of the inputs rule out the fused kernels."""
    row = int(rows[0])
    kinds, sizes = dtypes(trace, row)[:3], shapes(trace, row)
    found = []
    if not trace.has_gpu:
        if _inside(trace, trace.events.of(DROPOUT)).any():
            found.append("It drops out weights (dropout_p), which the fused implementation on the CPU can't.")
        if sizes and len(sizes) > 2 and sizes[0][-1] != sizes[2][-1]:
            found.append(f"Query and value have {sizes[0][-1]} and {sizes[2][-1]} features.")
        if not found and _may_be_learned(trace, row):
            found.append(
                "A mask of numbers is given: one that requires gradients, a learned bias, has no fused implementation "
                "on the CPU."
            )
        return found
    if kinds and kinds[0] in ("float32", "float64"):
        found.append(f"Inputs are {kinds[0]}, which FlashAttention doesn't take.")
    if sizes and (sizes[0][-1] % 8 or sizes[0][-1] > 256):
        found.append(f"The head dimension is {sizes[0][-1]}.")
    if len(sizes) > 3:
        found.append(f"A mask of shape {sizes[3]} is given.")
    return found
