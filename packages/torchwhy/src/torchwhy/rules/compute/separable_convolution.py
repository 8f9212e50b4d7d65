"""Square kernels that are the product of two lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, product_shape, work_of
from torchwhy.trace.derived.shapes import Shape
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, MULTIPLY, OUTER_PRODUCT, PRODUCT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["outer_kernels", "separable_convolution"]

BEFORE: Final = 12
"""The product that makes a kernel is at most this number of operators before the convolution that reads it."""


@rule("D53", "separable-convolution", source="operations by shapes: k x k against 2 k per pixel", frees="device")
def separable_convolution(trace: Trace, *, share: float = 0.05, least: int = 5) -> Iterator[Finding]:
    """An image is blurred with a square kernel that is the product of two lines.

    Sees: a product of a column and a row, and among the next twelve operators `aten::conv2d` of single channels whose
    kernel has that size, at least 5 x 5, as `torchvision.transforms.GaussianBlur` and measures of structure (SSIM)
    compute it. It takes 5% of the window or more, with its backward pass. Needs recorded shapes.

    Costs: k x k multiplications for each pixel, where a line across and a line down take k each.

    Fix: convolve twice: with the row, then with the column. The result differs by rounding only.

    Known problems: tensors are known by their shapes. Narrow kernels may be slower in two passes, as each reads and
    writes the image. A kernel that is made before the recorded steps isn't seen.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    kernels = outer_kernels(trace, program, least)
    rows = np.array(list(kernels), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    down, across = max(kernels.values())
    saved = 1 - (down + across) / (down * across)
    yield Finding(
        title=f"Images are convolved with a square of {down} x {across}, the product of two lines: {percent(part)} of "
        "the time",
        confidence="medium",
        time_us=when.total / 1000 * saved,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause=f"Each pixel takes {down * across:,} multiplications; two lines take {down + across}.",
        fix="Convolve twice: F.conv2d with the row, kernel.view(1, 1, 1, k), then with the column, "
        "kernel.view(1, 1, k, 1).",
        linked=False,
    )


def outer_kernels(trace: Trace, program: ForwardPass, least: int) -> dict[int, Shape]:
    """The convolutions of single channels whose kernel was made as a product of two lines, each with its size."""
    found: dict[int, Shape] = {}
    for i in np.flatnonzero(trace.events.are(CONVOLUTION, program.rows)).tolist():
        kernel = program.shapes[i][1] if len(program.shapes[i]) > 1 else ()
        size = kernel[2:]
        if len(size) != 2 or kernel[1] != 1 or min(size) < least:
            continue
        before = range(i - 1, max(i - 1 - BEFORE, -1), -1)
        maker = next((k for k in before if _made(trace, program.rows[k : k + 1], program.shapes[k]) == size), -1)
        if maker >= 0:
            found[int(program.rows[i])] = size
    return found


def _made(trace: Trace, row: Int32, taken: list[Shape]) -> Shape:
    """The shape of a product of a column and a row; () for others."""
    if len(taken) != 2:
        return ()
    if trace.events.are(OUTER_PRODUCT, row)[0]:
        return (*taken[0], *taken[1])
    if trace.events.are(MULTIPLY, row)[0]:
        column, line = ((1,) * (2 - len(shape)) + shape for shape in taken)
        lines = len(column) == len(line) == 2 and {column[1], line[0]} == {1}
        return (column[0], line[1]) if lines else (line[0], column[1]) if {line[1:], column[:1]} == {(1,)} else ()
    if trace.events.are(PRODUCT, row)[0] and taken[0][-1] == 1 and len(taken[1]) == 2:
        return product_shape(trace, int(row[0]), taken) or ()
    return ()
