"""Names of kernels in words: which library, what it computes, on what type, in what tile."""

from __future__ import annotations

from torchwhy.trace.meaning.kernels.decoding import decode, distinct
from torchwhy.trace.meaning.kernels.name import (
    KINDS,
    MEMORY_BOUND,
    OPERATIONS,
    KernelName,
    kind_of_operation,
    short_name,
)

__all__ = [
    "KINDS",
    "MEMORY_BOUND",
    "OPERATIONS",
    "KernelName",
    "decode",
    "distinct",
    "kind_of_operation",
    "short_name",
]
