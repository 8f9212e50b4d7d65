"""Activations that are widened, and narrowed again by the next layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import WIDTH, Shape, dtypes, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import VIEW
from torchwhy.trace.meaning.tensors import CHANGE_OF_TYPE, COPY_TENSOR
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["cast_and_back"]

AHEAD: Final = 4
"""The widened tensor is read at most this number of operators after the cast."""

Cast = tuple[Shape, str, str]
"""The shape of what is cast, its type, and the type that it gets."""


@rule("D55", "cast-and-back", source="a cast to a wider type, and the same tensor's cast back", frees="device")
def cast_and_back(trace: Trace, *, share: float = 0.02) -> Iterator[Finding]:
    """A tensor is cast to a wider type, and the next layer casts it back.

    Sees: a cast that the program calls, such as `.float()` of 16 bits, and the next operator that reads a tensor of
    that shape, which casts it back: a cast itself, or a layer under `torch.autocast`. Both casts take 2% of the window
    or more, with their backward pass. Needs recorded shapes.

    Costs: each reads and writes the whole tensor, forward and backward, and no digit is gained.

    Fix: leave out the cast. `torch.autocast` itself computes in 32 bits what needs them, such as norms and losses.

    Known problems: tensors are known by their shapes. Where the wide tensor is read once more, as in a sum around the
    layer, that cast is needed, and only the one back can be saved.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found: dict[int, Cast] = {}
    for i in np.flatnonzero(trace.events.are(CHANGE_OF_TYPE, program.rows)).tolist():
        row = int(program.rows[i])
        cast = _cast(trace, row)
        if cast is None or WIDTH[cast[1]] >= WIDTH[cast[2]]:
            continue
        back = _back(trace, program, i, cast)
        if back >= 0:
            found.update({row: cast, back: cast})
    rows = np.array(sorted(found), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    _, narrow, wide = next(iter(found.values()))
    yield Finding(
        title=f"Tensors are cast {narrow} to {wide} and back {counted(len(rows) // 2, 'time')}: {percent(part)} of "
        "the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause=f"The program casts to {wide}, and the next operator that reads the tensor casts it to {narrow} again.",
        fix=f"Leave out the cast to {wide}. Under torch.autocast what needs 32 bits, such as norms and losses, gets "
        "them by itself.",
        linked=False,
    )


def _back(trace: Trace, program: ForwardPass, i: int, cast: Cast) -> int:
    """The event that casts the result of a cast back; -1 where something else reads it first."""
    shape, narrow, wide = cast
    for k in range(i + 1, min(i + 1 + AHEAD, len(program.rows))):
        row = int(program.rows[k])
        if shape not in program.shapes[k]:
            continue
        if trace.events.are(VIEW, [row])[0]:
            return -1  # its result may have another shape
        inside = np.append(np.int32(row), trace.calls.inside(row))
        casts = inside[trace.events.are(CHANGE_OF_TYPE, inside)].tolist()
        return next((one for one in casts if _cast(trace, one) == (shape, wide, narrow)), -1)
    return -1


def _cast(trace: Trace, row: int) -> Cast | None:
    """The shape of a cast and its types; None if it changed no type, or no types were recorded."""
    inside = trace.calls.inside(row)
    for copy in inside[trace.events.are(COPY_TENSOR, inside)].tolist():
        sizes, types = shapes(trace, copy), dtypes(trace, copy)
        if sizes and len(types) > 1 and types[0] and types[1] and types[0] != types[1]:
            return sizes[0], types[1], types[0]
    return None
