"""Names of kernels in words: which library, what it computes, on what type, in what tile."""

from __future__ import annotations

from torchwhy.trace.meaning.kernels.decoding import decode, distinct
from torchwhy.trace.meaning.kernels.name import MEMORY_BOUND, OPERATIONS, KernelName, short_name

__all__ = ["MEMORY_BOUND", "OPERATIONS", "KernelName", "decode", "distinct", "short_name"]
