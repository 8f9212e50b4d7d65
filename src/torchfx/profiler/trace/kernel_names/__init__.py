"""Names of kernels in words: which library, what it computes, on what type, in what tile."""

from __future__ import annotations

from torchfx.profiler.trace.kernel_names.decoding import decode, distinct
from torchfx.profiler.trace.kernel_names.name import MEMORY_BOUND, OPERATIONS, KernelName

__all__ = ["MEMORY_BOUND", "OPERATIONS", "KernelName", "decode", "distinct"]
