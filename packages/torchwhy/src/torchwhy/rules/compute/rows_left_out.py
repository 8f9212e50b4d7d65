"""Elementwise work on all rows or pixels of a tensor, of which few are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.needless import needless
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import (
    ForwardPass,
    backward_of,
    differentiated,
    forward_pass,
    work_of,
)
from torchwhy.trace.derived.shapes import Shape, elements, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, POOLED_TO_SIZE, READS_ALL, UPSAMPLING
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.meaning.operators import FLIP, READS_ROWS, SAME_SHAPE
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["augmented_before_shrinking", "rows_left_out"]

BEFORE: Final = 20
"""How many operators before the reading of the rows are examined."""

AFTER: Final = 8
"""An operator at most this number later reads the chosen rows: its shape gives their number."""


@rule("D41", "rows-left-out", source="elementwise operators right before the rows are chosen", frees="device")
def rows_left_out(trace: Trace, *, times: float = 4.0, share: float = 0.05) -> Iterator[Finding]:
    """Every row of a tensor is computed, and few of them are read.

    Sees: elementwise operators on a tensor right before some of its rows are chosen (`x[rows]`, `index_select`), at
    most a fourth of them by the shape of what reads them next, in 5% of the window or more. Needs recorded shapes.

    Costs: elementwise work gives the same on the chosen rows alone. At stake is the part of the rows that isn't read,
    with its backward pass.

    Fix: choose the rows first, and compute on them.

    Known problems: tensors are known by their shapes; a result that is read elsewhere, too, is needed whole.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found: dict[int, float] = {}  # by row: the part of its work that isn't needed
    sizes: list[tuple[int, int]] = []
    for i in np.flatnonzero(trace.events.are(READS_ROWS, program.rows)).tolist():
        kept = _rows_read(program, i)
        if not kept or kept * times > program.shapes[i][0][0]:
            continue
        before = _elementwise_before(trace, program, i)
        if before:
            sizes.append((program.shapes[i][0][0], kept))
            found |= {int(program.rows[k]): 1 - kept / program.shapes[i][0][0] for k in before}
    rows = np.array(sorted(found), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    (count, kept) = max(set(sizes), key=sizes.count)
    seen = evidence(trace, rows)
    line = own_frame(seen[0].stack)
    yield Finding(
        title=f"{count:,} rows are computed, of which {kept:,} are read: {percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * max(found.values()),
        stretches=when,
        window=window,
        evidence=seen,
        cause="Elementwise operators work on the whole tensor before some of its rows are chosen."
        + (f" They are called in {line}." if line else ""),
        fix="Choose the rows first, and compute on them: f(x[rows]) instead of f(x)[rows].",
    )


def _rows_read(program: ForwardPass, i: int) -> int:
    """How many rows are chosen, by what reads them; 0 where the shapes don't show it."""
    if not program.shapes[i] or len(program.shapes[i][0]) < 2:
        return 0
    count, *rest = program.shapes[i][0]
    following = (shape for taken in program.shapes[i + 1 : i + 1 + AFTER] for shape in taken)
    sizes = [shape[0] for shape in following if list(shape[1:]) == rest]
    return sizes[0] if sizes and sizes[0] < count else 0


def _elementwise_before(trace: Trace, program: ForwardPass, i: int) -> list[int]:
    """Operators right before that compute elements of the same shape; small ones in between don't matter."""
    shape, found = program.shapes[i][0], []
    for k in range(i - 1, max(-1, i - 1 - BEFORE), -1):
        taken = program.shapes[k]
        if program.step[k] != program.step[i]:
            break
        if taken and taken[0] == shape and trace.events.are(ELEMENTWISE | SAME_SHAPE, program.rows[k : k + 1])[0]:
            found.append(k)
        elif 10 * max(map(elements, taken), default=0) > elements(shape):
            break
    return found


@rule("D69", "augmented-before-shrinking", source="elementwise operators right before images shrink", frees="device")
def augmented_before_shrinking(trace: Trace, *, share: float = 0.05, times: float = 4.0) -> Iterator[Finding]:
    """Images are changed pixel by pixel at a size that is shrunk right afterwards.

    Sees: elementwise operators and reductions on images (four dimensions, up to four channels) right before
    `F.interpolate` or an average pooling to a given size makes a fourth of the pixels of them or fewer, outside of what
    is trained. Two operators or more, 5% of the window or more. Needs recorded shapes and values.

    Costs: brightness, colour and normalisation cost as much as there are pixels. At stake is the part of the pixels
    that isn't kept.

    Fix: shrink first, then augment and normalise.

    Known problems: what isn't linear, such as clamping, gives slightly other pixels in the other order.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    for i in np.flatnonzero(trace.events.are(UPSAMPLING | POOLED_TO_SIZE, program.rows)).tolist():
        images = (*program.shapes[i], ())[0]
        kept = _pixels_kept(trace, int(program.rows[i]))
        if len(images) != 4 or images[1] > 4 or not kept or kept * times > elements(images[2:]):
            continue
        before = program.rows[_at_full_size(trace, program, i, images)]
        if len(before) > 1 and not differentiated(trace, before).any():
            parts |= dict.fromkeys(before.tolist(), 1 - kept / elements(images[2:]))
    yield from needless(
        trace,
        parts,
        share,
        "Images are changed pixel by pixel before they are shrunk",
        cause="Elementwise operators work on all pixels right before "
        f"{percent(max(parts.values(), default=0.0))} of them are dropped.",
        fix="Shrink first (F.interpolate), then augment and normalise.",
    )


def _pixels_kept(trace: Trace, row: int) -> int:
    """How many pixels of an image are made; 0 where that wasn't recorded."""
    given = values(trace, row)
    size = [item for item in parse_list(given[1]) if isinstance(item, int)] if len(given) > 1 else []
    return size[0] * size[1] if len(size) == 2 and size[0] * size[1] > 1 else 0


def _at_full_size(trace: Trace, program: ForwardPass, i: int, images: Shape) -> list[int]:
    """Operators right before that change or sum up images of one size; small ones in between don't matter."""
    found = []
    for k in range(i - 1, max(-1, i - 1 - BEFORE), -1):
        row = program.rows[k : k + 1]
        if program.step[k] != program.step[i]:
            break
        if images in program.shapes[k] and trace.events.are(ELEMENTWISE | SAME_SHAPE | READS_ALL | FLIP, row)[0]:
            found.append(k)
        elif 10 * max(map(elements, program.shapes[k]), default=0) > elements(images):
            break
    return found
