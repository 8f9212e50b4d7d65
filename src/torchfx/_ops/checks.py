"""Checks of tensors at the operators' door: raised before any sample is touched.

They run at every call of a few microseconds, hence `is` for dtypes and `dim()` for `ndim`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["check_finite", "check_same_device", "check_signal", "check_sos", "check_stable", "check_state"]

FLOAT32, FLOAT64 = torch.float32, torch.float64


def check_signal(x: Tensor) -> None:
    """Raise unless `x` is a non-empty float32 or float64 tensor (..., time)."""
    dtype = x.dtype
    if dtype is not FLOAT32 and dtype is not FLOAT64:
        raise ArgumentTypeError(
            f"x must be float32 or float64, got {x.dtype}; convert it first, e.g. x.float() "
            f"(half precision would lose the filter's state)"
        )
    if x.dim() == 0 or x.numel() == 0:
        raise ArgumentError(f"x must hold samples, shape (..., time), got the empty shape {tuple(x.shape)}")


def check_sos(sos: Tensor) -> int:
    """Return the number of sections, or raise unless `sos` is float64 (sections, 6)."""
    if sos.dtype is not FLOAT64:
        raise ArgumentTypeError(f"sos must be float64, got {sos.dtype}")
    if sos.dim() == 2:
        sections, columns = sos.shape
        if columns == 6 and sections > 0:
            return sections
    raise ArgumentError(f"sos must have the shape (sections >= 1, 6), got {tuple(sos.shape)}")


def check_state(state: Tensor, shape: tuple[int, ...]) -> None:
    """Raise unless `state` is float64 of exactly this shape."""
    if state.dtype != torch.float64:
        raise ArgumentTypeError(f"state must be float64, got {state.dtype}")
    if tuple(state.shape) != shape:
        raise ArgumentError(f"state must have the shape {shape} (SciPy's zi), got {tuple(state.shape)}")


def check_same_device(x: Tensor, name: str, other: Tensor) -> None:
    """Raise unless the other tensor lies where the signal lies."""
    if not (other.is_cpu and x.is_cpu) and other.device != x.device:
        raise ArgumentError(f"{name} must be on the signal's device {x.device}, got {other.device}")


def check_finite(name: str, values: Tensor) -> None:
    """Raise when a coefficient is NaN or infinite. Reads the values: waits for the device they are on."""
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        where = tuple(bad[0].tolist())
        raise ArgumentError(f"{name} must be finite, got {float(values[where])} at index {list(where)}")


def check_stable(sos: Tensor) -> None:
    """Raise when a section has no finite coefficients, a0 = 0, or a pole on or outside the unit circle.

    The poles of 1 + a1/z + a2/z^2 lie inside exactly when |a2| < 1 and |a1| < 1 + a2 (the stability triangle).
    """
    check_finite("sos", sos)
    for k, (_, _, _, a0, a1, a2) in enumerate(sos.tolist()):
        if a0 == 0:
            raise ArgumentError(f"sos: section {k} has a0 = 0, it must not be zero")
        if not (abs(a2 / a0) < 1 and abs(a1 / a0) < 1 + a2 / a0):
            raise ArgumentError(
                f"sos: section {k} is unstable: its poles must lie inside the unit circle, "
                f"got a = [{a0:.17g}, {a1:.17g}, {a2:.17g}]"
            )
