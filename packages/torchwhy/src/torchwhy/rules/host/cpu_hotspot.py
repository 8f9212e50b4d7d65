"""One operator that takes most of the time on the CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.double import in_double
from torchwhy.rules.compute.slow_half import slow_products
from torchwhy.rules.evidence import most_first
from torchwhy.rules.host.cpu_time import by_shape, own_time
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import differentiated, forward_pass
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import dtypes, elements, growth, shapes, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, COSINE, DROPOUT, LINEAR, READS_ALL, READS_AND_WRITES
from torchwhy.trace.meaning.communication import EXCHANGE
from torchwhy.trace.meaning.compiler import COMPILED_CODE, COMPILING, ENTERING, REGION
from torchwhy.trace.meaning.frames import MODULE, own_frame
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import (
    AUTOGRAD_NODE,
    COPY,
    DECOMPOSITION,
    DRAWS_ORDER,
    HEAVY,
    MAGNITUDE,
    STATISTIC,
    WEIGHTED_DRAW,
)
from torchwhy.trace.meaning.programs import kin
from torchwhy.trace.meaning.tensors import CONCATENATE, MAKE_TENSOR
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups
from torchwhy.wording import percent, shortened

__all__ = ["cpu_hotspot"]

WRAPPER: Final = COMPILED_CODE | ENTERING | AUTOGRAD_NODE | MODULE | EXCHANGE | COMPILING
"""Operators that wrap other operators, or wait for others; their own time is no operator's."""

FUSED_BY_COMPILERS: Final = READS_AND_WRITES | READS_ALL
"""Elementwise operators and reductions."""

LONG: Final = 4
"""A matrix is long if it has at least this many times as many rows as columns, or columns as rows."""

_GROWS: Final = " Its input grows from {:,} to {:,} elements in the recorded calls: later ones have more to do."
_NOT_HEAVY: Final = "It is neither a matrix product nor a convolution."


@rule("B22", "cpu-hotspot", source="`Self CPU time` of the profiler's table", frees="host")
def cpu_hotspot(
    trace: Trace,
    *,
    share: float = 0.3,
    of_window: float = 0.15,
    short_us: float = 20.0,
    often: int = 3,
    once_us: float = 10_000.0,
    most_of_it: float = 0.5,
) -> Iterator[Finding]:
    """One operator takes most of the time on the CPU.

    Sees: in a program without GPU, an operator with 30% or more of all operators' own time and 15% of the window;
    with the shapes it was called with, where they were recorded. Copies have a separate rule, cpu-copies, and so
    have many calls of less than 20 us, dispatch-flood. One or two calls that take less than 10 ms may be an operator's
    first, and say nothing. A call counts for at most twice the median of similar calls: longer calls lost the
    processor. What an operator calls counts as its own, unless that is a product, a convolution or a copy.

    Costs: it is where the time goes. For matrix products, convolutions and attention this is expected. For other
    operators the finding shows where to look, not a fault: severity is low at half of all operators' time or more, and
    info below that and for the dropout of what is trained, unless a way around it is known (joining tensors, absolute
    values of complex numbers, cosines of pairs by broadcasting, float64, draws without replacement, factors completed
    to square matrices, weights made again).

    Fix: for those: all physical cores (`torch.set_num_threads`), bfloat16 where the processor has instructions for it,
    channels_last for convolutions; for elementwise operators and reductions `torch.compile`, which fuses them; for
    a model that serves, quantization.

    Known problems: an operator that must be computed is named as well as one that needn't be.
    """
    if not trace.derived(recorded).on_processor:
        return
    rows, own = own_time(trace)
    own = _usual(trace, rows, own)
    window = trace.derived(steady_window)
    total, length = int(own.sum()), window.end - window.start
    if not total or not length:
        return
    rows, own = _as_called(trace, rows, own)
    names, which = np.unique(trace.events.name[rows], return_inverse=True)
    spent = np.bincount(which, own.astype(np.float64))
    first = rows[np.unique(which, return_index=True)[1]]
    spent[trace.events.are(COPY | WRAPPER, first)] = 0
    best = most_first(spent, [trace.events.texts[int(i)] for i in names])[0]
    if spent[best] < share * total or spent[best] < of_window * length:
        return
    same, times = rows[which == best], own[which == best]
    name = trace.events.texts[int(names[best])]
    heavy = bool(trace.events.are(HEAVY, same[:1])[0])
    if heavy and len(np.intersect1d(same, trace.derived(slow_products).rows)) > len(same) / 2:
        return  # slow-half-precision reports it
    if not heavy and spent[best] < short_us * 1000 * len(same):  # the calls cost, not what they do
        return
    if len(same) < often and spent[best] < once_us * 1000:
        return
    taken = trace.events.times_of(same).clip(window.start, window.end)
    part, whole = spent[best] / total, min(window.share(taken), spent[best] / length)  # threads may work together
    fix, known = _hotspot_fix(trace, name, same, times, heavy=heavy)
    wanted = heavy or (not known and (_updating(trace, same) or _drops_in_training(trace, same)))
    seen = by_shape(trace, same, times)
    line = own_frame(seen[0].stack)
    yield Finding(
        title=f"{shortened(name)} takes {percent(part)} of the operators' time on the CPU, {percent(whole)} of all "
        "time",
        severity="" if known and not heavy else "low" if not wanted and most_of_it <= part else "info",
        most="medium",
        confidence="high",
        time_us=whole * window.us,
        window=window,
        evidence=seen,
        cause=("Heavy arithmetic, the purpose of the program." if heavy else _NOT_HEAVY)
        + (f" It is called in {line}." if line and not heavy else "")
        + (
            _GROWS.format(*grown)
            if (grown := growth(trace, same[np.argsort(trace.events.ts[same], kind="stable")]))
            else ""
        ),
        fix=fix,
        linked=True,
        stretches=taken,
    )


def _as_called(trace: Trace, rows: Int32, own: Int64) -> tuple[Int32, Int64]:
    """Return the operators that the program calls, with the time of all within; a heavy one, or a copy, is its own.

    `aten::multinomial` draws, divides, takes roots and sorts: the program calls none of these itself.
    """
    events, parents = trace.events, trace.calls.parent
    single = HEAVY | COPY | WRAPPER
    inner = parents >= 0
    inner[inner] = (events.kind[parents[inner]] == Kind.OPERATOR) & ~events.are(single, parents[inner])
    outermost = np.where(inner, parents, np.arange(len(parents), dtype=np.int32))
    while not np.array_equal(further := outermost[outermost], outermost):  # twice as far with each turn
        outermost = further
    outer = np.where(events.are(single, rows), rows, outermost[rows])
    called, which = np.unique(outer, return_inverse=True)
    return called, np.bincount(which, own.astype(np.float64)).astype(np.int64)


def _usual(trace: Trace, rows: Int32, own: Int64) -> Int64:
    """Return the time of each operator, at most twice the median of three or more calls with the same shapes.

    A thread that is taken off its processor lengthens whatever it is at: a short operator would look like a long one.
    """
    shapes = trace.events.text_ids("Input Dims", rows)
    alike = Groups(trace.events.name[rows], shapes)
    known = (alike.count >= 3) & (shapes[alike.first] >= 0)
    most = np.where(known, 2 * alike.median(own), np.inf)[alike.which]
    found: Int64 = np.minimum(own, most).astype(np.int64)
    return found


def _writes_square(trace: Trace, rows: Int32) -> bool:
    """Whether all calls of a decomposition complete the factor of a long matrix to a square one."""
    for row in rows[:20].tolist():
        given, taken = values(trace, row), shapes(trace, row)
        complete = given[1:2] in (["True"], ["complete"])
        if not complete or not taken or LONG * min(taken[0][-2:]) > max(taken[0][-2:]):
            return False
    return True


def _updating(trace: Trace, rows: Int32) -> bool:
    """Whether an optimizer calls most of them, to update weights."""
    steps = trace.events.times_of(trace.events.of(OPTIMIZER))
    return 2 * int(np.count_nonzero(steps.overlap(trace.events.ts[rows], trace.events.end[rows]))) > len(rows)


def _drops_in_training(trace: Trace, rows: Int32) -> bool:
    """Whether they are the dropout of what is trained."""
    return bool(trace.events.are(DROPOUT, rows[:1])[0] and differentiated(trace, rows).any())


def _fills_weights(trace: Trace, rows: Int32) -> bool:
    """Whether a tensor of the shape of a layer's weight is filled three times or more, and others hardly."""
    program = trace.derived(forward_pass)
    layers = np.flatnonzero(trace.events.are(LINEAR | CONVOLUTION, program.rows)).tolist()
    weights = {program.shapes[i][1] for i in layers if len(program.shapes[i]) > 1}
    filled = Counter(taken[0] for row in rows.tolist() if (taken := shapes(trace, row)))
    most = Counter({shape: count * elements(shape) for shape, count in filled.items()})
    return all(
        shape in weights and filled[shape] >= 3 for shape, size in most.items() if 10 * size >= most.total()
    ) and bool(most)


def _hotspot_fix(trace: Trace, name: str, rows: Int32, times: Int64, *, heavy: bool) -> tuple[str, bool]:
    """What helps, and whether it is known to."""
    types = {text for row in rows[:20] for text in dtypes(trace, int(row))}
    advice, known = [], True
    if times[in_double(trace, rows)].sum() > 0.5 * times.sum():
        advice.append("compute in float32: inputs are float64, at half the speed or less")
    if heavy:
        if kin(name) == "convolution":
            advice.append("the channels_last memory format for model and input")
        if not types & {"bfloat16", "float16"}:
            advice.append("torch.autocast('cpu', torch.bfloat16) on processors with AVX-512 BF16 or AMX")
        advice.append("torch.set_num_threads at the number of physical cores")
        advice.append("quantization, where a model only serves")
    elif trace.events.are(CONCATENATE, rows[:1])[0]:
        often = len(rows) >= 10 * max(len(trace.steps_found), 1)
        advice.append(
            "write the pieces into one tensor made beforehand"
            + (", or collect them in a list and join them once" if often else "")
        )
    elif trace.events.are(MAGNITUDE, rows[:1])[0] and types & {"complex64", "complex128"}:
        advice.append("x.real.square() + x.imag.square() where the square of the magnitude will do: it needs no root")
    elif trace.events.are(DRAWS_ORDER, rows[:1])[0]:
        advice.append(
            "draw the few indices that a step needs with torch.randint, or permute once per epoch and take slices"
        )
    elif trace.events.are(WEIGHTED_DRAW, rows[:1])[0]:
        advice.append(
            "draw with replacement=True, or torch.searchsorted(weights.cumsum(0), ...) of random numbers with the sums "
            "kept: without replacement all weights are drawn for and sorted"
        )
    elif trace.events.are(COSINE, rows[:1])[0] and len(set(shapes(trace, int(rows[0])))) > 1:
        advice.append(
            "F.normalize both and multiply them as matrices, a @ b.T: broadcasting writes each pair's products of all "
            "elements"
        )
    elif trace.events.are(DECOMPOSITION, rows[:1])[0] and _writes_square(trace, rows):
        advice.append(
            "pass full_matrices=False (mode='reduced' to qr): the default completes the factor of the long side to a "
            "square matrix, of which few columns belong to values"
        )
    elif trace.events.are(MAKE_TENSOR, rows[:1])[0] and _fills_weights(trace, rows):
        advice.append(
            "build the model once, before the loop, and load its weights there: tensors with the shapes of its layers' "
            "weights are filled again and again"
        )
    elif not advice:
        known = False
        if trace.events.are(STATISTIC, rows[:1])[0]:
            advice.append("where its input doesn't change from step to step, compute it once, before the loop")
        elif trace.events.are(DECOMPOSITION, rows[:1])[0]:
            if not differentiated(trace, rows).any():
                advice.append("where its matrix doesn't change from step to step, compute it once, before the loop")
            advice.append(
                "where less is wanted than all of it: torch.linalg.svdvals or eigvalsh for values alone, a power "
                "iteration for the largest (torch.nn.utils.parametrizations.spectral_norm), torch.svd_lowrank for a few"
            )
        elif _drops_in_training(trace, rows):
            advice.append("drop whole channels (F.dropout1d, F.dropout2d): a random number is drawn for each element")
        elif trace.events.are(MAKE_TENSOR, rows[:1])[0]:
            advice.append("make the tensor once, before the loop, or a smaller one")
        elif trace.events.are(FUSED_BY_COMPILERS, rows[:1])[0] and not _updating(trace, rows):
            if not differentiated(trace, rows).any():
                advice.append("where its input doesn't change from step to step, compute it once, before the loop")
            if not trace.events.any_of(REGION):
                advice.append("torch.compile computes it together with its neighbours")
    if not advice:
        if not differentiated(trace, rows).any() and not trace.events.are(DROPOUT, rows[:1])[0]:
            advice.append("where its input doesn't change from step to step, compute it once, before the loop")
        advice.append("call it less often, or on less data")
    text = "; ".join(advice)
    return (text if text.startswith("torch.") else text[0].upper() + text[1:]) + ".", known
