"""Which implementation serves which device, in words."""

from __future__ import annotations

from torchfx._ops import native

__all__ = ["cpu_path", "other_path"]


def cpu_path() -> str:
    """Return what runs on CPU tensors, and why where it is not the native library."""
    if native.library is None:
        return f"reference in plain PyTorch (native library {native.why_missing})"
    return f"native, instruction set {native.instruction_set()}"


def other_path() -> str:
    """Return what runs on tensors of any other device."""
    return "reference in plain PyTorch"
