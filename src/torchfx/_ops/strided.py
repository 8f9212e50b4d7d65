"""How tensors are handed to the C interface: signals as (channels, time) with two strides."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.output_memory import LARGEST, SMALLEST, reused
from torchfx.errors import TorchFXError

__all__ = ["as_channels", "empty_doubles", "empty_output", "packed", "raise_for"]

STATUS = {
    1: "an argument is out of range",
    2: "a coefficient is not finite",
    3: "a pole is unstable",
    4: "no memory",
}


def packed(coefficients: Tensor) -> Tensor:
    """Return the tensor in C order, its memory what it says; asking first costs less than `contiguous()`."""
    if coefficients.is_contiguous() and not coefficients.is_neg():
        return coefficients
    return coefficients.resolve_neg().contiguous()


def as_channels(x: Tensor, time: int) -> tuple[Tensor, int, int]:
    """Return (a tensor sharing or holding the samples, channel stride, time stride); copies only if it must."""
    if x.is_contiguous():
        return x, time, 1
    if x.ndim == 1:
        return x, 0, x.stride(0)
    if x.ndim > 2:
        x = x.reshape(-1, x.shape[-1])
    return x, x.stride(0), x.stride(1)


def empty_output(x: Tensor) -> Tensor:
    """Return an uninitialised contiguous tensor like `x`, large ones where the first touch costs little.

    Page faults on a fresh output cost 1.0 to 1.6 ns a sample, more than the filtering.
    """
    if (size := x.nbytes) < SMALLEST:
        return torch.empty_like(x) if x.is_contiguous() else torch.empty_like(x, memory_format=torch.contiguous_format)
    return _empty_large(tuple(x.shape), x.dtype, size)


def empty_doubles(shape: tuple[int, ...]) -> Tensor:
    """Return the same of this shape, float64."""
    size = 8 * math.prod(shape)
    return torch.empty(shape, dtype=torch.float64) if size < SMALLEST else _empty_large(shape, torch.float64, size)


def _empty_large(shape: tuple[int, ...], dtype: torch.dtype, size: int) -> Tensor:
    if size <= LARGEST:
        return reused(shape, dtype, size)
    y = torch.empty(shape, dtype=dtype)
    if native.library is not None:
        native.call["advise_huge_pages"](y.data_ptr(), size)
    return y


def raise_for(status: int, function: str) -> None:
    """Raise for a status the argument checks did not foresee."""
    raise TorchFXError(f"{function} failed with status {status}: {STATUS.get(status, 'unknown')}")
