"""Overhead events: Kineto's and the driver's own work."""

from __future__ import annotations

from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["BUFFERS", "CODE_LOADING"]

BUFFERS: Final = Meaning(
    r"(?i:activity buffer request|buffer flush|command buffer full|resource|instrumentation|uvm activity)",
    Kind.OVERHEAD,
)
"""The profiler gets, empties or waits for the memory it records into."""

CODE_LOADING: Final = Meaning(
    r"(?i:lazy function loading|runtime triggered module loading|driver compiler)", Kind.OVERHEAD
)
"""A kernel's code is loaded, or compiled, at its first use: the program's time, with or without a profiler."""
