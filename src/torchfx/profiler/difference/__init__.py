"""How two recordings of a program differ. Computing is here, and apart from it how that is shown."""

from __future__ import annotations

from torchfx.profiler.difference.comparing import diff
from torchfx.profiler.difference.difference import Difference
from torchfx.profiler.difference.text import FORMATS

__all__ = ["FORMATS", "Difference", "diff"]
