"""Which of many values occur, found by counting instead of sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchfx.profiler.trace.columns import Int32

__all__ = ["distinct"]


def distinct(indices: Int32, count: int) -> npt.NDArray[np.intp]:
    """The different values of indices below `count`, ascending, without -1; by counting, not by sorting."""
    seen = np.zeros(count + 1, np.bool_)
    seen[indices] = True
    return np.flatnonzero(seen[:-1])
