"""Half precision on a processor that has no instructions for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.host.cpu_time import by_shape, own_time
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.flops import flops_of
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import WIDTH, dtypes, shapes, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.arithmetic import CONVOLVING, operation_of
from torchwhy.trace.meaning.operators import HEAVY
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, shortened

__all__ = ["slow_half_precision", "slow_products"]

SLOW: Final = 8.0
"""Billions of operations a second. On two cores of a Zen 4 processor PyTorch's plain loops came to 1.8 to 5.3 in
float16 and in bfloat16; oneDNN to 93 to 200 in float32 and to 370 to 430 in bfloat16, and to 10 to 39 beside eight
busy programs.
"""

ORDINARY: Final = 20.0
"""Billions of operations a second that one core computes in float32 at least."""

_LEAST_WORK: Final = 1e6
_LEAST_PER_BYTE: Final = 8.0
"""Operations of a call, and for each byte: with fewer, calls and memory cost more than the arithmetic."""


@dataclass(frozen=True)
class SlowProducts:
    """Products and convolutions in half precision that run at less than `SLOW`.

    Attributes:
        rows: the operators.
        spent: nanoseconds of each.
        work: operations of all of them.
        dtype: of the one that takes the most time.
    """

    rows: Int32
    spent: Int64
    work: float
    dtype: str

    @property
    def rate(self) -> float:
        """Billions of operations a second."""
        return self.work / max(int(self.spent.sum()), 1)


def slow_products(trace: Trace) -> SlowProducts:
    """Find them, on a program without GPU, by the operators' shapes and types."""
    rows, spent = own_time(trace)
    heavy = trace.events.are(HEAVY, rows)
    rows, spent = rows[heavy], spent[heavy]
    columns = [trace.events.name[rows], *(trace.events.text_ids(one, rows) for one in ("Input Dims", "Input type"))]
    _, first, which = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    slow, work, longest, dtype = np.zeros(len(rows), bool), 0.0, 0, ""
    for group, place in enumerate(first.tolist()):
        alike, row = which == group, int(rows[place])
        time, needed, own = int(spent[alike].sum()), _work(trace, row), next(iter(dtypes(trace, row)), "")
        total = needed * int(alike.sum())
        if needed and total < SLOW * time:
            slow |= alike
            work += total
            longest, dtype = max((longest, dtype), (time, own))
    return SlowProducts(rows[slow], spent[slow], work, dtype)


def _work(trace: Trace, row: int) -> float:
    """Operations of a product in half precision, or 0 for others and for small ones."""
    kinds = {kind for kind in dtypes(trace, row) if kind}
    if len(kinds) != 1 or not kinds & {"float16", "bfloat16"}:
        return 0.0
    if operation_of(trace.name(row)) == "convolution":  # its implementations have other names
        row = next((above for above in (row, *trace.calls.ancestors(row)) if CONVOLVING.names(trace.name(above))), row)
    needed = flops_of(trace.name(row), shapes(trace, row), convolution_output(trace, row), 2, values(trace, row))
    if needed is None or needed[0] < _LEAST_WORK or needed[0] < _LEAST_PER_BYTE * needed[1] * WIDTH[kinds.pop()]:
        return 0.0
    return needed[0]


@rule("D33", "slow-half-precision", source="operations by shapes; rates measured as its file says", frees="host")
def slow_half_precision(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Products in half precision are slow on a processor without instructions for them.

    Sees: on a program without GPU, matrix products and convolutions with float16 or bfloat16 inputs that reach less
    than 8 billion operations a second, by their shapes. They take 5% of the window or more. Calls under a million
    operations, or with less than 8 for each byte, are left out.

    Costs: on a processor without instructions for the type PyTorch falls back to plain loops, 20 to 100 times slower
    than float32.

    Fix: float32 on this machine. bfloat16 is fast with AVX-512 BF16 or AMX, and float16 with AVX-512 FP16 or AMX-FP16.

    Known problems: processors that many other programs keep busy may be as slow. `record_shapes` is needed.
    """
    if not trace.derived(recorded).on_processor:
        return
    found, window = trace.derived(slow_products), trace.derived(steady_window)
    taken = trace.events.times_of(found.rows).clip(window.start, window.end)
    part = window.share(taken)
    if not len(found.rows) or part < share:
        return
    name = shortened(trace.name(int(found.rows[found.spent.argmax()])))
    yield Finding(
        title=f"{name} and similar operators compute {found.dtype} at {found.rate:.1f} GFLOP/s: "
        f"{percent(part)} of the time",
        confidence="medium",
        stretches=taken,
        time_us=part * window.us * (1 - found.rate / ORDINARY),
        window=window,
        evidence=by_shape(trace, found.rows, found.spent),
        cause=f"The processor has probably no instructions for {found.dtype}, so PyTorch computes in plain loops. One "
        f"core computes float32 at {ORDINARY:.0f} GFLOP/s or more.",
        fix="Compute in float32 on this machine: leave out .half(), .bfloat16() and autocast. bfloat16 is fast on "
        "processors with AVX-512 BF16 or AMX, float16 on those with AVX-512 FP16 or AMX-FP16.",
        linked=True,
    )
