"""Count NaN and infinite samples. Needs no PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["NotFinite"]


class NotFinite:
    """Counts NaNs and infinities.

    Attributes:
        found: their number and the frame of the first, or None.
    """

    def __init__(self) -> None:
        """Start before the first frame."""
        self.found: tuple[int, int] | None = None
        self.seen = 0

    def look(self, block: Any) -> None:
        """Count in the next block (channels, frames), an array or a tensor."""
        # A sum is NaN or infinite where a sample is, and costs a fraction of looking at each.
        with np.errstate(invalid="ignore", over="ignore"):
            total = float(block.sum())
        if not math.isfinite(total):
            bad = ~np.isfinite(block.numpy(force=True) if hasattr(block, "numpy") else block)
            count = int(bad.sum())
            if count:
                first = self.seen + int(bad.any(0).argmax())
                self.found = (count, first) if self.found is None else (self.found[0] + count, self.found[1])
        self.seen += block.shape[-1]
