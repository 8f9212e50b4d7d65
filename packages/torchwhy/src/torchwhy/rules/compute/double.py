"""Double precision, on devices and on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_peaks import used_peaks
from torchwhy.trace.derived.kernels import Kernels, kernels_of
from torchwhy.trace.derived.shapes import dtypes
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR, TABLE_LOOKUP
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.libraries import LIBRARY_OPERATOR
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks
from torchwhy.wording import percent

__all__ = ["fp64", "in_double"]

_LAYER: Final = LINEAR | CONVOLUTION | TABLE_LOOKUP | LIBRARY_OPERATOR
"""Layers of networks, and what packages with a vocabulary compute, such as filters."""

_SHORTER: Final = {"float32", "float16", "bfloat16", "complex64"}


@rule(
    "D4",
    "fp64",
    source="`dgemm` and `double` in names of kernels, or inputs of type double; 5% of the kernels' time",
    frees="device",
)
def fp64(trace: Trace, *, share: float = 0.05, cpu_share: float = 0.3, saved: float = 0.05) -> Iterator[Finding]:
    """Much is computed in double precision.

    Sees: kernels in float64, 5% of the kernels' time or more; without a device, operators whose largest input is of
    type `double` in 30% of the operators' own time, if half of that is 5% of the window (needs `record_shapes=True`).
    For filters the type of the signal counts, not that of the coefficients; calls of less than 5 us cost as much in
    float32.

    Costs: a 64th of the float32 speed on consumer and inference GPUs, half of it on A100, H100 and MI300X; on any
    device and on CPUs twice the memory traffic, and on CPUs half the numbers per instruction. At stake is half of the
    time, or more where the device's data sheet has float32 (of products TF32, or half precision where most of the other
    products have it) more than twice as fast.

    Fix: pass float32. Usual sources are NumPy arrays, which are float64 by default, and filter coefficients.

    Known problems: some programs need double precision. Without a device, one that computes in nothing else and has no
    layers or filters, such as a solver, gets this as information only. Without recorded shapes the CPU's operators are
    not judged; of kernels only those whose names show the type.
    """
    if trace.has_gpu:
        yield from _fp64_on_device(trace, share)
    else:
        yield from _fp64_on_cpu(trace, cpu_share, saved)


def _fp64_on_device(trace: Trace, share: float) -> Iterator[Finding]:
    kernels = trace.derived(kernels_of)
    chosen = kernels.that(lambda name: name.dtype in ("float64", "complex128"))
    part = kernels.share(chosen)
    if part < share:
        return
    rows = kernels.rows[chosen]
    known = used_peaks(trace)
    single, double = (known.flops("float32"), known.flops("float64")) if known else (0.0, 0.0)
    known_slower = 0 < double < single
    rate = f" This device computes float64 at 1/{single / double:.0f} of its float32 speed." if known_slower else ""
    yield from about_kernels(
        trace,
        rows,
        title=f"{percent(part)} of the compute kernels' time is spent in float64",
        cause="Inputs are double, the default of NumPy." + rate,
        fix="Convert to float32 before the data goes to the device (.float(), dtype=np.float32), if float32 is enough.",
        part=_saved(kernels, chosen, known),
    )


def _saved(kernels: Kernels, chosen: Flags, peaks: Peaks | None) -> float:
    """The part of these kernels' time that single precision saves at most; of products where they may use TF32."""
    products = kernels.that(lambda name: name.operation in ("matmul", "convolution")) & chosen
    saved = 0.0
    every = kernels.that(lambda name: name.operation in ("matmul", "convolution"))
    half = kernels.that(lambda name: name.dtype in ("float16", "bfloat16")) & every
    # Where the other products are in half precision, those in double would be, too.
    usual = ("float16", "bfloat16") if 2 * kernels.spent[half].sum() > kernels.spent[every & ~products].sum() else ()
    for group, wanted in ((products, ("float32", "tf32", *usual)), (chosen & ~products, ("float32",))):
        double, single = (max(peaks.flops(one) for one in names) if peaks else 0.0 for names in (("float64",), wanted))
        saved += int(kernels.spent[group].sum()) * (max(1 / 2, 1 - double / single) if double and single else 1 / 2)
    return saved / max(int(kernels.spent[chosen].sum()), 1)


def _fp64_on_cpu(trace: Trace, share: float, least: float, short_us: float = 5.0) -> Iterator[Finding]:
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[trace.in_steps(rows)]
    spent = trace.calls.self_time[rows]
    chosen = in_double(trace, rows) & (spent >= short_us * 1000)
    total = int(spent.sum())
    part = float(spent[chosen].sum()) / total if total else 0.0
    busy = trace.when(rows[chosen])
    saved = min(busy.total, int(spent[chosen].sum())) / 2000
    if part < share or saved < least * trace.window.us or not saved:
        return
    yield Finding(
        title=f"{percent(part)} of the operators' time is spent in float64; float32 needs half of it or less",
        severity="info" if _all_on_purpose(trace) else "",
        most="medium",
        confidence="medium",
        time_us=saved,
        stretches=busy,
        window=trace.window,
        evidence=evidence(trace, rows[chosen], times=spent[chosen]),
        cause="The data are double, the default of NumPy: they take twice the memory, and a vector "
        "register holds half as many of them. Some operators have fast implementations for float32 only.",
        fix="Convert the data once, where they are loaded: torch.from_numpy(array).float() or "
        "array.astype(np.float32), and model.float() for a model in double. float32 has 24 bits of mantissa, "
        "some seven digits.",
        linked=True,
    )


def _all_on_purpose(trace: Trace) -> bool:
    """Whether a program computes with double numbers alone, and has no layers, which don't need them."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    if events.any_of(_LAYER):
        return False
    _, first = np.unique(events.text_ids("Input type", rows), return_index=True)
    return not any(set(dtypes(trace, int(row))) & _SHORTER for row in rows[first])


def in_double(trace: Trace, rows: Int32) -> npt.NDArray[np.bool_]:
    """Which operators compute in float64: by their largest input, of other packages by the first."""
    events = trace.events
    types, sizes = events.text_ids("Input type", rows).astype(np.int64), events.text_ids("Input Dims", rows)
    library = events.are(LIBRARY_OPERATOR, rows)
    # Few combinations are distinct: each is examined once.
    _, one, which = np.unique((types << 32) + (sizes << 1) + library, return_index=True, return_inverse=True)
    double = [_is_double(trace, int(rows[i]), by_first=bool(library[i])) for i in one.tolist()]
    found: npt.NDArray[np.bool_] = np.array(double, np.bool_)[which]
    return found


def _is_double(trace: Trace, row: int, *, by_first: bool) -> bool:
    dims = parse_list(trace.events.text("Input Dims", row))
    kinds = [(kind, _size(dims[i]) if i < len(dims) else 0) for i, kind in enumerate(dtypes(trace, row)) if kind]
    if not kinds:
        return False
    kind, _ = kinds[0] if by_first else max(kinds, key=lambda item: item[1])
    return kind in ("float64", "complex128")


def _size(shape: object) -> int:
    return prod(shape) if isinstance(shape, list) and all(isinstance(size, int) for size in shape) else 0
