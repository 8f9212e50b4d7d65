"""Products of matrices of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import forward_pass, needless_work
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.shapes import dtypes, elements, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import PRODUCT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["integer_products"]

INTEGERS: Final = frozenset({"int64", "int32"})
"""Products of int8, uint8 and int16 took 0.9 to 1.8 times as long as with float32 and both conversions."""

OF_PRODUCT: Final = 0.4
"""The share of the time that float32 saves: products of matrices of 100 x 100 to 512 x 512 took 1.7 to 3.3 times as
long with int64 or int32 as with float32 and both conversions, on one core."""

LARGE: Final = 10_000
"""Elements of a matrix; smaller ones gain nothing."""


@rule("D72", "integer-products", source="products of int64 and of float32 matrices timed", frees="device")
def integer_products(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Matrices of integers are multiplied on the processor.

    Sees: `@`, `matmul`, `mm`, `bmm` of tensors of int64 or int32, one of 10,000 elements or more, in 5% of the window
    or more, without a GPU. Needs recorded shapes and types.

    Costs: no fast library multiplies them; a plain loop does.

    Fix: multiply as float32, exact for whole numbers up to 2**24 (16.8 million), or as float64, up to 2**53, and
    convert the result back.

    Known problems: int8, uint8 and int16 aren't counted: they take barely longer than float32 with its conversions.
    Products of int8 by a library for quantised networks have other operators.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    rows = program.rows[events.are(PRODUCT, program.rows)].tolist()
    rows = [row for row in rows if (types := set(dtypes(trace, row)) - {""}) and types <= INTEGERS]
    rows = [row for row in rows if max(map(elements, shapes(trace, row)), default=0) >= LARGE]
    when, needless = needless_work(trace, dict.fromkeys(rows, OF_PRODUCT))
    part = window.share(when)
    if not trace.derived(recorded).on_processor or not rows or part < share:
        return
    yield Finding(
        title=f"Matrices of integers are multiplied: {percent(part)} of the time",
        confidence="high",
        time_us=needless,
        stretches=when,
        window=window,
        evidence=evidence(trace, np.array(rows, np.int32)),
        cause="No fast library multiplies integers; a plain loop does.",
        fix="Multiply as float32, exact for whole numbers up to 2**24, or as float64, up to 2**53: "
        "(a.float() @ b.float()).long().",
        linked=True,
    )
