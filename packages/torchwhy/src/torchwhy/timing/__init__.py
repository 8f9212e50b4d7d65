"""Time a function so that the number can be believed, and compare several of them."""

from __future__ import annotations

from torchfx.profiler.timing.comparing import compare
from torchfx.profiler.timing.comparison import Comparison, Ratio
from torchfx.profiler.timing.measurement import Measurement
from torchfx.profiler.timing.measuring import measure
from torchfx.profiler.timing.statement import function_from
from torchfx.profiler.timing.timing_warnings import TimingWarning

__all__ = ["Comparison", "Measurement", "Ratio", "TimingWarning", "compare", "function_from", "measure"]
