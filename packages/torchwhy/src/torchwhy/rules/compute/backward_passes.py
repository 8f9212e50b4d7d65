"""Backward passes that compute more than is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd, graph_makers
from torchwhy.trace.derived.forward_pass import work_of
from torchwhy.trace.derived.shapes import Shape, shapes, tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.communication import EXCHANGE
from torchwhy.trace.meaning.compiler import COMPILED_CODE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT, AUTOGRAD_NODE, BACKWARD
from torchwhy.trace.meaning.runtime import GRAPH_LAUNCH
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["repeated_backward", "unread_gradients"]


@rule("D26", "repeated-backward", source="`Sequence number`: the same node of the graph runs again", frees="device")
def repeated_backward(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Several backward passes go through the same layers.

    Sees: nodes of the backward pass that run two times or more in a step, by their sequence numbers, and gradients that
    are accumulated in each of these passes. All passes but the first take 5% of the window or more. Left out are
    passes that build a graph themselves (`create_graph=True`), as a gradient penalty needs.

    Costs: each pass through shared layers computes all their gradients again, to be added up.

    Fix: add the losses and call `backward` once: the sum's gradient is the sum of the gradients. Then
    `retain_graph=True` isn't needed either.

    Known problems: where each loss's gradients are needed alone, as in gradient surgery, the passes are needed.
    """
    events, window = trace.events, trace.derived(steady_window)
    pairs = trace.derived(autograd)
    inside = trace.in_steps(pairs.backward) & events.begin_in(pairs.backward, window.start, window.end)
    rows, forward = pairs.backward[inside], pairs.forward[inside]
    order = np.lexsort((events.ts[rows], forward))
    rows, forward = rows[order], forward[order]
    again = np.concatenate(([False], forward[1:] == forward[:-1]))[: len(rows)]
    if not again.any() or trace.calls.within(trace.derived(graph_makers), rows).any():
        return
    # Between the first node that runs again and the next node that is new lie the gradients of that pass, too.
    nodes = np.concatenate((rows, _accumulating(trace)))
    repeated = np.isin(nodes, rows[again])
    order = np.argsort(events.ts[nodes], kind="stable")
    nodes, repeated = nodes[order], repeated[order]
    gradient = events.are(ACCUMULATE_GRADIENT, nodes)
    known = np.maximum.accumulate(np.where(~gradient, np.arange(len(nodes)), 0))
    repeated = repeated[known]
    if not (gradient & repeated).any():
        return
    when = work_of(trace, nodes[repeated])
    part = window.share(when)
    if part < share:
        return
    times = int(np.unique(forward, return_counts=True)[1].max())
    yield Finding(
        title=f"Up to {times} backward passes go through the same layers: all but the first take {percent(part)} of "
        "the time",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, nodes[repeated & ~gradient]),
        cause="backward is called for several losses that share layers (retain_graph=True). Each call computes the "
        "gradients of the shared layers again.",
        fix="Sum the losses and call backward once: (loss_a + loss_b).backward() accumulates the same gradients.",
        linked=True,
    )


def _accumulating(trace: Trace) -> Int32:
    """The nodes that add to a parameter's gradient."""
    rows = trace.events.of(ACCUMULATE_GRADIENT)
    window = trace.derived(steady_window)
    found: Int32 = rows[trace.in_steps(rows) & trace.events.begin_in(rows, window.start, window.end)]
    return found


@rule("D27", "unread-gradients", source="shapes of gradients against those that optimizers read", frees="device")
def unread_gradients(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Gradients are computed for parameters that are not trained.

    Sees: gradients that are accumulated although no operator outside of the backward pass reads a tensor of their shape
    from there to the end of the optimizer's next step. The part of each backward pass that follows the last gradient
    that is read takes 5% of the window or more: it computes nothing else.

    Costs: the backward pass through all layers of a frozen network, and the memory that it keeps for that.

    Fix: `backbone.requires_grad_(False)`, or `torch.no_grad()` around its forward pass.

    Known problems: silent where ranks exchange gradients, and with compiled code or CUDA graphs: optimizers then read
    buffers of other shapes, or call no operators. Parameters are known by their shapes; a frozen parameter with the
    shape of a trained one is not found. Gradients that an optimizer reads in a later step (accumulation) silence the
    rule unless it steps in each one.
    """
    events, window = trace.events, trace.derived(steady_window)
    updates, gradients = events.of(OPTIMIZER_STEP), _accumulating(trace)
    if not len(updates) or not len(gradients) or events.any_of(EXCHANGE | COMPILED_CODE | GRAPH_LAUNCH):
        return  # optimizers of parts of a model read flat buffers; replayed and compiled ones call no operators
    following = np.searchsorted(events.end[updates], events.end[gradients])
    seen = following < len(updates)
    gradients, following = gradients[seen], following[seen]
    read = _read_shapes(trace)
    useless = np.zeros(len(gradients), np.bool_)
    for i, row in enumerate(gradients.tolist()):
        until = int(events.end[updates[following[i]]])
        shape = _shape_of(trace, row)
        useless[i] = shape is not None and not _any_between(read.get(shape), int(events.end[row]), until)
    if not useless.any() or useless.all():
        return
    nodes = events.of(AUTOGRAD_NODE)
    begins, following_node = events.ts[nodes], np.searchsorted(events.end[updates], events.ts[nodes])
    removed = np.zeros(len(nodes), np.bool_)
    for update in np.unique(following).tolist():
        mine = following == update
        needed = gradients[mine & ~useless]
        if len(needed) and (mine & useless).any():
            removed |= (following_node == update) & (begins > int(events.ts[needed].max()))
    rows = nodes[removed & events.begin_in(nodes, window.start, window.end)]
    when = work_of(trace, rows)
    part = window.share(when)
    if part < share:
        return
    count = Counter(_shape_of(trace, int(row)) for row in gradients[useless])
    yield Finding(
        title=f"Gradients of {counted(len(count), 'shape')} of parameters are computed, and nothing reads them: "
        f"{percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=(*evidence(trace, gradients[useless], limit=1), *evidence(trace, rows, limit=4)),
        cause="Parameters that no optimizer updates require gradients, so the backward pass goes through their layers.",
        fix="Freeze them: backbone.requires_grad_(False), or call the frozen part under torch.no_grad().",
    )


def _shape_of(trace: Trace, row: int) -> Shape | None:
    """The shape of the gradient that a node accumulates; None where it wasn't recorded."""
    for inner in (row, *trace.calls.inside(row).tolist()):
        found = shapes(trace, inner)
        if found:
            return found[0]
    return None


def _read_shapes(trace: Trace) -> dict[Shape, list[int]]:
    """When operators outside of the backward pass begin, by the shapes that they read."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[~trace.calls.within(rows, events.of(BACKWARD))]
    texts = events.text_ids("Input Dims", rows)
    found: dict[Shape, list[int]] = {}
    for text in np.unique(texts[texts >= 0]).tolist():
        same = rows[texts == text]
        first = int(same[0])
        for shape in {*shapes(trace, first), *(one for each in tensor_lists(trace, first) for one in each)}:
            found.setdefault(shape, []).extend(events.ts[same].tolist())
    return {shape: sorted(times) for shape, times in found.items()}


def _any_between(times: list[int] | None, start: int, end: int) -> bool:
    """Whether one of these moments, in order, lies between two others."""
    if not times:
        return False
    i = int(np.searchsorted(times, start))
    return i < len(times) and times[i] <= end
