"""Sizes that don't fit the tensor cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import Kernels, kernels_of
from torchwhy.trace.derived.roofline import roofline_groups
from torchwhy.trace.derived.shapes import dtypes, shapes
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import MATRIX_PRODUCT
from torchwhy.trace.meaning.kernels import KernelName
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["misaligned_dims"]


@rule(
    "D5",
    "misaligned-dims",
    source="NVIDIA's guide to tensor cores: multiples of 16 bytes; torch.profiler's pattern matcher, dimensions",
    needs={"gpu"},
    frees="device",
)
def misaligned_dims(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Matrices have sizes the tensor cores can't load well.

    Sees: matrix multiplications whose kernels are named for a poor alignment (`align1`, `align2`; 16-bit types also
    `align4`), or 16-bit ones whose inner or last dimension isn't a multiple of 8. They take 5% of the kernels' time or
    more.

    Costs: elements are loaded one or two at a time instead of 16 bytes at once, often by an older and slower kernel. At
    stake is the time of these products beyond 70% of the roofline, where shapes and peaks are known, else half of their
    time.

    Fix: pad the dimension to a multiple of 8, better 64: a vocabulary of 30522 to 30528.

    Known problems: names show alignment for CUTLASS only; slices with an unaligned start have good sizes and aren't
    seen by size.
    """
    kernels = trace.derived(kernels_of)
    by_name = kernels.that(_poor)
    by_size = _odd_sizes(trace, kernels)
    chosen = by_name | by_size
    part = kernels.share(chosen)
    if part < share:
        return
    rows = kernels.rows[chosen]
    odd = _dimensions(trace, kernels.operator[chosen])
    sizes = ", ".join(f"{size} (pad to {-(-size // 8) * 8})" for size in odd[:3])
    yield from about_kernels(
        trace,
        rows,
        title=f"{percent(part)} of the compute kernels' time goes to matrix products whose sizes don't fit the tensor "
        "cores",
        confidence="high" if by_name.any() else "medium",
        cause=f"Dimensions that aren't multiples of 8: {sizes}." if sizes else "The kernels load unaligned rows.",
        fix="Pad these dimensions to a multiple of 8 (64 is better still): vocabulary, classes, features, heads. "
        "Slices of larger tensors can be unaligned too, even with good sizes.",
        linked=bool(by_name.any()),
        part=_gained(trace, rows),
        least=0.005,
    )


def _gained(trace: Trace, rows: Int32) -> float:
    """The part of these products' time that good sizes could save: half of it where that is unknown."""
    judged = [group for group in trace.derived(roofline_groups) if group.ideal and np.isin(group.kernels, rows).any()]
    spent = sum(group.spent for group in judged)
    whole = max(int(trace.events.dur[rows].sum()), spent)
    return (sum(group.gain for group in judged) + (whole - spent) / 2) / whole if whole else 1 / 2


def _poor(name: KernelName) -> bool:
    if name.operation != "matmul" or not name.alignment or name.dtype not in ("float16", "bfloat16", "tf32"):
        return False
    return name.alignment < (4 if name.dtype == "tf32" else 8)


def _odd_sizes(trace: Trace, kernels: Kernels) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Products of 16-bit types on tensor cores whose operator has a size that isn't a multiple of 8."""
    half = kernels.that(lambda name: name.operation == "matmul" and name.dtype in ("float16", "bfloat16"))
    half &= kernels.that(lambda name: name.tensor_core is not False)
    operators = np.unique(kernels.operator[half & (kernels.operator >= 0)])
    return half & np.isin(kernels.operator, [row for row, sizes in _odd(trace, operators) if sizes])


def _dimensions(trace: Trace, operators: Int32) -> list[int]:
    """Inner and last dimensions of matrix operators that aren't multiples of 8, the most frequent first."""
    count = Counter(size for _, sizes in _odd(trace, np.unique(operators[operators >= 0])) for size in sizes)
    return [size for size, _ in count.most_common()]


def _odd(trace: Trace, operators: Int32) -> list[tuple[int, set[int]]]:
    """Each operator with its inner and last dimensions that aren't multiples of 8; read once per distinct shapes."""
    events = trace.events
    operators = operators[events.are(MATRIX_PRODUCT, operators)]
    keys = zip(*(events.text_ids(key, operators).tolist() for key in ("Input Dims", "Input type")), strict=True)
    known: dict[tuple[int, ...], set[int]] = {}
    found = []
    for row, key in zip(operators.tolist(), keys, strict=True):
        if key not in known:
            pair = shapes(trace, row)[-2:]
            typed = {*dtypes(trace, row)} & {"float16", "bfloat16", "float32"}
            inner = {pair[0][-1], pair[1][-1]} if len(pair) == 2 and typed else set()
            known[key] = {size for size in inner if size > 8 and size % 8}
        found.append((row, known[key]))
    return found
