"""Device work by kind: `trace.kinds()`."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Final

from torchwhy.trace.derived.kernel_kinds import KindOfWork, kinds_of_work
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["kinds"]

COLUMNS: Final = (
    "kind",
    "calls",
    "time_us",
    "share",
    "tflops",
    "gb_s",
    "roofline_share",
    "bound",
    "gain_us",
    "judged_share",
)


def kinds(trace: Trace) -> Table:
    """Return device work in the window by kind, sorted by time.

    Returns:
        `kind`: GEMM, attention, convolution, MoE, elementwise, reduction, norm, embedding, copy (within a device's
        memory), transfer (from one memory to another), communication, other, unknown; `calls`: kernels, copies and
        fills; `time_us`: their durations together; `share` of the durations of all work. By the shapes of the operators
        that launched them: `tflops`, 10^12 operations per second; `gb_s`, GB/s read and written at least;
        `roofline_share`: the part of what the device could do with these shapes; `bound`: "compute", "memory", or
        "latency" (calls too small for either); `gain_us`: the time less, if every call came to 70% of the roofline, or
        to 5 us; `judged_share`: the part of the kind's time that these figures are of. NaN and "" where the trace or
        the device's data sheet doesn't show it.
    """
    return Table.of([_row(one) for one in trace.derived(kinds_of_work)], COLUMNS)


def _row(one: KindOfWork) -> dict[str, object]:
    known = bool(one.ideal)
    return {
        "kind": one.kind,
        "calls": len(one.rows),
        "time_us": one.spent / 1000,
        "share": one.share,
        "tflops": one.flops / one.judged / 1000 if one.flops and one.judged else nan,
        "gb_s": one.bytes / one.judged if one.bytes and one.judged else nan,
        "roofline_share": one.of_roofline,
        "bound": one.bound,
        "gain_us": one.gain / 1000 if known else nan,
        "judged_share": one.judged / one.spent if one.spent else 0.0,
    }
