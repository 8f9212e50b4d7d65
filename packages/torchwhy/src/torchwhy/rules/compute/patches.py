"""Convolutions that copy all patches of their input first."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import PATCHES, PRODUCT
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["unfolded_convolution"]

AHEAD: Final = 6
"""The product is at most this number of operators after the one that copies the patches."""

OF_PRODUCT: Final = 0.6
"""The share of the product's time that a convolution also saves: it copies neither its input nor its result. One
program with 3 to 32 channels, 3 x 3 kernels and 48 x 48 pixels became 3.3 times as fast on a processor: all of the
copying, and 0.57 of the product."""


@rule(
    "D42", "unfolded-convolution", source="a product with the patches of `aten::im2col` and one matrix", frees="device"
)
def unfolded_convolution(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A convolution is computed as a product with copies of all patches.

    Sees: `aten::im2col` (`F.unfold`) that the program calls, and among the next six operators a matrix product of the
    patches, known by their number of elements, with one matrix for all of them. Both take 5% of the window or more,
    with their backward pass.

    Costs: every element is copied once for each element of the kernel. The copies are written, read, and in training
    kept and added up again. At stake is all of the copying, and 60% of the product.

    Fix: `F.conv2d(x, weight, bias, stride, padding)`: it computes the same sums, whatever the weight was made of.

    Known problems: patches that are used for something else as well are still needed.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    copies, products = [], []
    for i in np.flatnonzero(trace.events.are(PATCHES, program.rows)).tolist():
        reader = _product(trace, program, i)
        if reader >= 0:
            copies.append(int(program.rows[i]))
            products.append(int(program.rows[reader]))
    if not copies:
        return
    chosen = [np.array(rows, np.int32) for rows in (copies, products)]
    parts = [work_of(trace, np.concatenate((rows, backward_of(trace, rows)))) for rows in chosen]
    when = parts[0] | parts[1]
    part = window.share(when)
    if part < share:
        return
    yield Finding(
        title=f"A convolution is computed as a product with copies of all patches: {percent(part)} of the time",
        confidence="high",
        time_us=(parts[0].total + OF_PRODUCT * (parts[1] - parts[0]).total) / 1000,
        stretches=when,
        window=window,
        evidence=evidence(trace, np.array(copies + products, np.int32)),
        cause="F.unfold copies each element for each element of the kernel; one matrix multiplies all patches. "
        "A convolution does that without the copies.",
        fix="F.conv2d(x, weight, bias, stride, padding), with the matrix as weight of shape (outputs, inputs, height, "
        "width).",
        linked=False,
    )


def _product(trace: Trace, program: ForwardPass, i: int) -> int:
    """The product of the patches with one matrix; -1 without one, and where shapes don't show it."""
    given, taken = values(trace, int(program.rows[i])), program.shapes[i]
    kernel = parse_list(given[1]) if len(given) > 1 else []
    if not taken or len(taken[0]) < 3 or not kernel or not all(isinstance(size, int) for size in kernel):
        return -1
    patch = taken[0][-3] * prod(int(str(size)) for size in kernel)
    for k in range(i + 1, min(i + 1 + AHEAD, len(program.rows))):
        if not trace.events.are(PRODUCT, program.rows[k : k + 1])[0]:
            continue
        matrices = [shape for shape in program.shapes[k][:2] if patch in shape[-2:]]
        if len(matrices) == 2 and sorted(len(shape) for shape in matrices) in ([2, 2], [2, 3]):
            return k
    return -1
