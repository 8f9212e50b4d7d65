"""Copies on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.host.cpu_time import by_shape, own_time
from torchwhy.rules.host.object_copies import copied_objects
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import dtypes, elements, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import CONVERSION, COPY_OR_CONVERSION, LAYOUT, MOVE, RESHAPE, TO_COPY_BACKWARD
from torchwhy.trace.meaning.tensors import CLONE, CONCATENATE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["cpu_copies"]


SLOWEST_NS: Final = 100
"""A processor copies or converts an element in this time, however slow it is and however the memory lies."""

CALL_NS: Final = 1_000_000
"""A call of any size may lose its processor for this time."""

_SHORT: Final = frozenset(("float16", "bfloat16"))
_FIXES: Final = (
    (LAYOUT, "Make the layout once, rather than permute before operators that need contiguous data."),
    (RESHAPE, "Make the layout once: reshape copies what permute or a slice has made non-contiguous."),
    (CONVERSION, "Convert dtype once, when data is loaded, not in every step."),
    (CLONE, "Don't clone what isn't changed afterwards; write in place or into a given output."),
    (CONCATENATE, "Write into a tensor made once instead of joining pieces."),
)
"""The fixes, by the operator that asks for the copies."""

_ANY_COPY: Final = "Keep one dtype and one layout all the way; write into tensors made once."
_HALVES: Final = (
    "Convert between 16 and 32 bits once, not in every step. Where autocast does it, of weights and inputs in every "
    "pass, a model converted once (model.bfloat16()) avoids it."
)


@rule("B23", "cpu-copies", source="`Self CPU time` of aten::copy_ in the profiler's table", frees="host")
def cpu_copies(
    trace: Trace, *, share: float = 0.15, of_window: float = 0.05, least_us: float = 5.0
) -> Iterator[Finding]:
    """Copies take a large part of the time on the CPU.

    Sees: in a program without GPU, `aten::copy_` and what leads to it (to, contiguous, clone) with 15% or more of the
    operators' own time and 5% of the window. Copies that an operator makes for itself (the bias of a matrix product,
    the input of a sort), those of `copy.deepcopy` and those of less than 5 us, which only cost their call, don't count.

    Costs: memory is read and written without computing anything.

    Fix: keep one dtype and one layout all the way; avoid permute followed by contiguous, clones of what isn't changed,
    and float64 inputs that are converted in every step.

    Known problems: a copy between processes or into pinned memory, which a data loader needs, counts as well where the
    loop itself makes it.
    """
    if not trace.derived(recorded).on_processor:
        return
    rows, own = own_time(trace)
    total, window = int(own.sum()), trace.derived(steady_window)
    copies = _asked_for(trace, rows) & (own >= least_us * 1000) & ~_waits(trace, rows, own)
    copies &= trace.events.covered(rows, copied_objects(trace)) == 0  # deepcopy-each-step reports them
    spent = int(own[copies].sum())
    chosen, times = rows[copies], own[copies]
    taken = trace.events.times_of(chosen).clip(window.start, window.end)
    part = min(window.share(taken), spent / 1000 / window.us if window.us else 0.0)
    if not total or spent < share * total or part < of_window:
        return
    asked, share_asked = _asked_by(trace, chosen, times)
    yield Finding(
        title=f"Copies take {percent(spent / total)} of the operators' time on the CPU, {percent(part)} of the window",
        confidence="high",
        time_us=part * window.us,
        window=window,
        evidence=by_shape(trace, chosen, times),
        cause=f"{asked} requests them: {percent(share_asked)} of their time."
        if asked
        else "Tensors are converted or brought into another layout.",
        fix=_HALVES
        if CONVERSION.names(asked) and _halves(trace, chosen, times)
        else next((fix for meaning, fix in _FIXES if meaning.names(asked)), _ANY_COPY),
        linked=True,
        stretches=taken,
    )


def _asked_for(trace: Trace, rows: Int32) -> npt.NDArray[np.bool_]:
    """Which operators copy because the program or a conversion asks for it."""
    events = trace.events
    parent = trace.calls.parent[rows]
    within = (parent >= 0) & (events.kind[parent] == Kind.OPERATOR)
    found: npt.NDArray[np.bool_] = events.are(MOVE, rows) & (~within | events.are(COPY_OR_CONVERSION, parent))
    return found


def _waits(trace: Trace, rows: Int32, own: Int64) -> npt.NDArray[np.bool_]:
    """Which copies take longer than any processor needs: they wait, such as for a device that wasn't recorded."""
    sizes = trace.events.text_ids("Input Dims", rows)
    known = np.flatnonzero(sizes >= 0)
    found = np.zeros(len(rows), np.bool_)
    _, first, which = np.unique(sizes[known], return_index=True, return_inverse=True)
    count = np.array([elements(next(iter(shapes(trace, int(rows[known[i]]))), ())) for i in first], np.int64)
    found[known] = own[known] > SLOWEST_NS * count[which.reshape(-1)] + CALL_NS
    return found


def _halves(trace: Trace, rows: Int32, times: Int64) -> bool:
    """Whether most of the time goes to conversions between 16 and 32 bits, such as autocast makes.

    Where types weren't recorded, whether what is converted needs gradients: a data loader's tensors do not.
    """
    longest = np.argsort(-times, kind="stable")[:200]
    kinds = [set(dtypes(trace, int(row))[:2]) for row in rows[longest]]
    if not any(kinds):
        return trace.events.any_of(TO_COPY_BACKWARD)
    mixed = np.array(["float32" in kind and bool(kind & _SHORT) for kind in kinds], np.bool_)
    return bool(times[longest][mixed].sum() * 2 > times[longest].sum())


def _asked_by(trace: Trace, rows: Int32, times: Int64) -> tuple[str, float]:
    """The operator that asks for more than half of these copies, and its share of their time; "" where none does."""
    spent: dict[str, int] = {}
    for i in np.argsort(-times, kind="stable")[:200].tolist():
        above = [a for a in trace.ancestors(int(rows[i])) if trace.events.kind[a] == Kind.OPERATOR]
        # contiguous calls clone, which calls copy_: the outermost of these is the program's own call.
        asking = list(takewhile(lambda one: trace.events.are(COPY_OR_CONVERSION, [one])[0], above)) or [int(rows[i])]
        name = trace.name(asking[-1])
        spent[name] = spent.get(name, 0) + int(times[i])
    best = max(spent, key=lambda name: spent[name], default="")
    share = spent[best] / max(sum(spent.values()), 1) if best else 0.0
    return (best, share) if share > 0.5 else ("", 0.0)
