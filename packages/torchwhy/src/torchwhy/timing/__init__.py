"""Time functions reliably, and compare them."""

from __future__ import annotations

from torchwhy.timing.comparing import compare
from torchwhy.timing.comparison import Comparison, Ratio
from torchwhy.timing.measurement import Measurement
from torchwhy.timing.measuring import measure
from torchwhy.timing.statement import function_from
from torchwhy.timing.timing_warnings import TimingWarning

__all__ = ["Comparison", "Measurement", "Ratio", "TimingWarning", "compare", "function_from", "measure"]
