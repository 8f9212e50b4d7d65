"""What the host was doing, as stretches of time over all threads."""

from __future__ import annotations

import numpy as np

from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.meaning.compiler import COMPILED_CODE
from torchfx.profiler.trace.meaning.kinds import Kind, Meaning
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["calling", "during"]


def during(trace: Trace, meaning: Meaning) -> Intervals:
    """When any event that means this ran."""
    return _union(trace, trace.events.of(meaning))


def calling(trace: Trace) -> Intervals:
    """When at least one thread was inside an operator, other than compiled code, or a call of the device's runtime."""
    rows = trace.events.rows(Kind.OPERATOR, Kind.RUNTIME)
    return _union(trace, rows[~trace.events.are(COMPILED_CODE, rows)])


def _union(trace: Trace, rows: Int32) -> Intervals:
    events = trace.events
    return Intervals.union(events.ts[rows], np.asarray(events.end[rows]))
