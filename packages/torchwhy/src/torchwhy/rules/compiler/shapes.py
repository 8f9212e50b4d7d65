"""What changed between two variants of a compiled function, where shapes were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from torchwhy.trace.derived.compiled import Compilation, compiled_of
from torchwhy.trace.meaning.compiler import COMPILED_FUNCTION
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace

__all__ = ["changed_shape"]


def changed_shape(trace: Trace, again: Iterable[Compilation]) -> str:
    """Say which input of a function differs from the last call before it was compiled again, or "".

    Autograd's `CompiledFunction` has the shapes and types of a graph's inputs; without gradients nothing has.
    """
    compiled, events = trace.derived(compiled_of), trace.events
    entered = events.of(COMPILED_FUNCTION)
    for compilation in again:
        mine = compiled.regions[compiled.frame == compilation.frame]
        starts = events.ts[mine]
        before, after = mine[starts < compilation.start], mine[starts >= compilation.end]
        if compilation.frame < 0 or not len(before) or not len(after):
            continue
        old, new = (_inputs(trace, entered, int(row)) for row in (before[-1], after[0]))
        for i, (was, now) in enumerate(zip(old, new, strict=False) if len(old) == len(new) else ()):
            if was != now:
                return f"Input {i} of the graph was {_written(was)} and became {_written(now)}."
    return ""


def _inputs(trace: Trace, entered: np.ndarray[tuple[int], np.dtype[np.int32]], region: int) -> list[tuple[Any, Any]]:
    """Shape and type of each input of the first graph a region enters."""
    events = trace.events
    low = int(np.searchsorted(events.ts[entered], events.ts[region]))
    first = next((row for row in entered[low : low + 8].tolist() if events.lane[row] == events.lane[region]), -1)
    if first < 0 or events.end[first] > events.end[region]:
        return []
    shapes, types = (parse_list(events.text(key, first)) for key in ("Input Dims", "Input type"))
    return list(zip(shapes, types, strict=True)) if len(shapes) == len(types) else []


def _written(found: tuple[Any, Any]) -> str:
    shape, kind = found
    return f"{kind or 'a value'}{shape}" if isinstance(shape, list) else str(kind)
