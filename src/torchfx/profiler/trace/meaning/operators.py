"""Operators: what PyTorch calls them."""

from __future__ import annotations

from typing import Final

from torchfx.profiler.trace.meaning.kinds import CALLED, Kind, Meaning

__all__ = ["AUTOGRAD_NODE", "BACKWARD", "ITEM", "ONCE_A_STEP"]

_O: Final = Kind.OPERATOR

AUTOGRAD_NODE: Final = Meaning(r"autograd::engine::evaluate_function", *CALLED)
"""The engine runs one node of the backward pass."""

BACKWARD: Final = AUTOGRAD_NODE | Meaning(r".*Backward\d*$", *CALLED)
"""The backward pass: nodes, and the operators that are named after them."""

ITEM: Final = Meaning(r"aten::(item|_local_scalar_dense|is_nonzero)$", _O)
"""A number is read from a tensor, and on a device waited for."""

ONCE_A_STEP: Final = (
    Meaning(
        r"Torch-Compiled Region|CompiledFunction|autograd::engine|Optimizer\.|enumerate\(DataLoader\)",
        *CALLED,
    )
    | ITEM
)
"""What a program does once a step rather than once a layer.

A lookup of compiled code (`TorchDynamo Cache Lookup`) is none: each graph break adds one.
"""
