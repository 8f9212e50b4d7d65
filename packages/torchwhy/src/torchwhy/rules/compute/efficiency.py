"""Operators with known shapes: how long their kernels took, and how long the device would need at best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.rules.compute.flops import flops_of
from torchwhy.rules.compute.kernels import Kernels
from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.shapes import WIDTH, dtypes, elements, shapes
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import STREAMING, operation_of
from torchwhy.trace.meaning.tensors import COPY_TENSOR
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks

__all__ = ["PRODUCTS", "Group", "groups"]

PRODUCTS = ("matmul", "attention", "convolution")


@dataclass(frozen=True)
class Group:
    """Calls of one operator with the same shapes and types.

    Attributes:
        operators: their rows.
        name: of the operator.
        spent: nanoseconds of their kernels.
        ideal: nanoseconds the device would need at best.
        work: arithmetic operations of all calls; 0 for streaming ones.
        bound: "arithmetic", "memory", or "streaming" for operators that only read and write.
        dtype: what they compute in.
    """

    operators: Int32
    name: str
    spent: float
    ideal: float
    work: float
    bound: str
    dtype: str

    @property
    def reached(self) -> float:
        """The part of the roofline they come to."""
        return self.ideal / self.spent if self.spent else 1.0


def groups(trace: Trace, kernels: Kernels, peaks: Peaks) -> list[Group]:
    """Operators with known shapes that launched kernels, by name, shapes and types."""
    events = trace.events
    product = kernels.that(lambda name: name.operation in PRODUCTS)
    streaming = kernels.that(
        lambda name: name.operation in ("elementwise", "copy", "softmax") and name.library == "PyTorch"
    )
    found = []
    for chosen, bound in ((product, "product"), (streaming, "streaming")):
        at = np.flatnonzero(chosen & (kernels.operator >= 0))
        operators, which = np.unique(kernels.operator[at], return_inverse=True)
        if not len(operators):
            continue
        spent = np.bincount(which.reshape(-1), weights=kernels.spent[at])
        launched = np.bincount(which.reshape(-1))
        first = np.zeros(len(operators), np.int64)
        first[which.reshape(-1)] = kernels.which[at]
        dims = events.text_ids("Input Dims", operators)
        keys = np.stack((events.name[operators], dims, events.text_ids("Input type", operators), first))
        distinct, group = np.unique(keys, axis=1, return_inverse=True)
        group = group.reshape(-1)
        for i in np.flatnonzero(distinct[1] >= 0).tolist():
            members = operators[group == i]
            name, calls = kernels.names[int(distinct[3, i])], launched[group == i]
            made = _group(trace, members, float(spent[group == i].sum()), name.dtype, bound, peaks, int(calls.min()))
            found += [made] if made else []
    return found


def _group(
    trace: Trace, members: Int32, spent: float, dtype: str, bound: str, peaks: Peaks, launched: int
) -> Group | None:
    row = int(members[0])
    name, sizes = trace.name(row), shapes(trace, row)
    kinds = [kind for kind in dtypes(trace, row) if kind]
    width = WIDTH.get(kinds[0], 0) if kinds else 0
    if not width or not sizes:
        return None
    if bound == "streaming":
        if not STREAMING.names(name):
            return None
        widths = [WIDTH.get(kind, width) for kind in kinds] + [width] * len(sizes)
        moved = sum(elements(size) * wide for size, wide in zip(sizes, widths, strict=False))
        moved += 0 if COPY_TENSOR.names(name) else max(map(elements, sizes)) * width
        return Group(members, name, spent, len(members) * moved / peaks.bandwidth, 0.0, "streaming", dtype)
    output = convolution_output(trace, row) if operation_of(name) == "convolution" else ()
    needed = flops_of(name, sizes, output, min(launched, 2))
    rate = peaks.flops(dtype or kinds[0])
    if needed is None or not rate:
        return None
    computing, moving = needed[0] / rate * 1e9, needed[1] * width / peaks.bandwidth
    limit = "arithmetic" if computing >= moving else "memory"
    count = len(members)
    return Group(members, name, spent, count * max(computing, moving), count * needed[0], limit, dtype or kinds[0])
