"""Attention over keys that were allocated and not written yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.needless import needless
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass
from torchwhy.trace.derived.shapes import values
from torchwhy.trace.meaning.arithmetic import ATTENTION_CALL
from torchwhy.trace.meaning.operators import COPY, STRIDED_SLICE
from torchwhy.trace.model.trace import Trace

__all__ = ["unfilled_cache"]

BEFORE: Final = 16
"""How many operators before attention are searched for the writing of its keys."""


@rule("D80", "unfilled-cache", source="the slice that is written before attention against its keys", frees="device")
def unfilled_cache(trace: Trace, *, times: float = 2.0, share: float = 0.05) -> Iterator[Finding]:
    """Attention reads all of a preallocated cache, of which little is filled.

    Sees: `aten::scaled_dot_product_attention` with a mask, right after `aten::slice` and `copy_` wrote a part of a
    tensor of the keys' shape: the end of that part is at most half of the keys. Together 5% of the window or more.
    Needs recorded shapes and values.

    Costs: the mask hides the positions that aren't filled, but their keys and values are read and multiplied. At stake
    is their part of the time.

    Fix: attend to what is filled: `keys[:, :, :position + 1]`, without a mask for a single query.

    Known problems: tensors are known by their shapes. In a ring buffer what follows the written part may be filled with
    older positions.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    filled, length = 0, 0
    for i in np.flatnonzero(trace.events.are(ATTENTION_CALL, program.rows)).tolist():
        taken = program.shapes[i]
        if len(taken) < 4 or len(taken[1]) < 3:
            continue
        end, keys = _written(trace, program, i), taken[1][-2]
        if 0 < end * times <= keys:
            parts[int(program.rows[i])] = 1 - end / keys
            filled, length = max(filled, end), keys
    yield from needless(
        trace,
        parts,
        share,
        f"Attention reads a cache of {length:,} positions, of which {filled:,} or fewer are filled",
        cause="Keys are written into a part of a preallocated tensor; attention reads all of it, and a mask hides the "
        "rest.",
        fix="Attend to what is filled: keys[:, :, :position + 1] and values alike; a single query then needs no mask.",
    )


def _written(trace: Trace, program: ForwardPass, i: int) -> int:
    """The end of the part of the keys that is written right before attention; 0 where none is."""
    keys = program.shapes[i][1]
    for k in range(i - 2, max(-1, i - 2 - BEFORE), -1):
        taken = program.shapes[k]
        if taken[:1] != [keys] or not trace.events.are(STRIDED_SLICE, program.rows[k : k + 1])[0]:
            continue
        given = values(trace, int(program.rows[k]))
        dimension, first, end = (int(one) if one.lstrip("-").isdigit() else -1 for one in (*given, "", "", "", "")[1:4])
        along = dimension % len(keys) == len(keys) - 2 and 0 <= first < end
        part = (*keys[:-2], end - first, keys[-1])
        copied = trace.events.are(COPY, program.rows[k + 1 : k + 2])[0] and program.shapes[k + 1][:1] == [part]
        if along and copied and program.step[k] == program.step[i]:
            return end
    return 0
