"""How tensors reach the C interface: signals as rows with two strides, coefficients as rows, results to be written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx.errors import TorchFXError

__all__ = [
    "Rows",
    "Signal",
    "add_up",
    "address",
    "coefficient_rows",
    "empty",
    "packed",
    "pass_on",
    "raise_for",
    "signal_rows",
    "unsummed",
]

HUGE = 4 << 20
"""Bytes from which on a fresh result is asked to lie in huge pages: touching 4 KiB pages for the first time costs more
than the filtering (1.0 to 1.6 ns a float)."""

STATUS = {
    1: "an argument is out of range",
    2: "a coefficient is not finite",
    3: "a pole is unstable",
    4: "no memory",
}


class Signal(NamedTuple):
    """A signal as the C interface takes it.

    Attributes:
        tensor: what holds the samples; keep it as long as the address is used.
        row_stride, time_stride: in elements.
        repeat: how many consecutive channels of the result read each row.
    """

    tensor: Tensor
    row_stride: int
    time_stride: int
    repeat: int


class Rows(NamedTuple):
    """Coefficients as the C interface takes them: channel c uses row (c // repeat) % rows.

    Attributes:
        tensor: (rows, ...), contiguous.
        rows, repeat: see above.
    """

    tensor: Tensor
    rows: int
    repeat: int


def empty(shape: Sequence[int], dtype: torch.dtype, like: Tensor) -> Tensor:
    """Return an uninitialised contiguous tensor on the device of another one."""
    result = torch.empty(shape, dtype=dtype, device=like.device)
    if result.nbytes >= HUGE and result.is_cpu and native.library is not None:
        pack, run = native.call["advise_huge_pages"]
        run(pack(result.data_ptr(), result.nbytes))
    return result


def packed(tensor: Tensor) -> Tensor:
    """Return the tensor in C order, its memory what it says; asking first costs less than `contiguous()`."""
    if tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    return tensor.resolve_neg().contiguous()


def address(tensor: Tensor | None) -> int:
    """Return where a packed tensor lies, 0 for none."""
    return 0 if tensor is None else tensor.data_ptr()


def signal_rows(x: Tensor, leading: Sequence[int]) -> Signal:
    """Return a signal (..., time) for a result with these leading dimensions, which it broadcasts to."""
    time = x.shape[-1]
    repeat = 1
    if x.shape != (*leading, time):
        x, repeat = _broadcast(x, leading)
    if x.is_contiguous() and not x.is_neg():
        return Signal(x, time, 1, repeat)
    x = x.resolve_neg()
    if x.dim() == 1:
        return Signal(x, 0, x.stride(0), repeat)
    if x.dim() > 2:
        x = x.reshape(-1, time)
    return Signal(x, x.stride(0), x.stride(1), repeat)


def coefficient_rows(coefficients: Tensor, core: int, leading: Sequence[int]) -> Rows:
    """Return coefficients (..., *core) for a result with these leading dimensions, which they broadcast to."""
    shape = coefficients.shape[: coefficients.dim() - core]
    if shape.numel() == 1:
        return Rows(packed(coefficients), 1, 1)
    if shape == tuple(leading):
        return Rows(packed(coefficients), math.prod(shape), 1)
    own = (*(1 for _ in range(len(leading) - len(shape))), *shape)
    first = next((i for i, size in enumerate(own) if size != 1), len(own))
    last = max((i for i, size in enumerate(own) if size != 1), default=first - 1)
    if all(own[i] == leading[i] for i in range(first, last + 1)):
        return Rows(packed(coefficients), math.prod(own), max(1, math.prod(leading[last + 1 :])))
    full = coefficients.expand(*leading, *coefficients.shape[coefficients.dim() - core :])
    return Rows(packed(full), math.prod(leading), 1)


def pass_on(before: Tensor | None, after: Tensor) -> None:
    """Write a state, None for rest, into the one after a signal without samples; likewise backwards."""
    after.zero_() if before is None else after.copy_(before)


def unsummed(gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """Return where to write a gradient before `add_up`: separate room where the operand was broadcast to a shape."""
    return gradient if gradient.shape == torch.Size(shape) else gradient.new_empty(shape)


def add_up(found: Tensor, gradient: Tensor) -> None:
    """Sum over what the operand was broadcast to, into its gradient."""
    if found is not gradient:
        gradient.copy_(found.sum_to_size(gradient.shape))


def raise_for(status: int, function: str) -> None:
    """Raise for a status the argument checks did not foresee."""
    raise TorchFXError(f"{function} failed with status {status}: {STATUS.get(status, 'unknown')}")


def _broadcast(x: Tensor, leading: Sequence[int]) -> tuple[Tensor, int]:
    """Return a signal whose rows, each repeated, are the channels; without a copy where the last dimensions repeat."""
    own = (*(1 for _ in range(len(leading) - x.dim() + 1)), *x.shape[:-1])
    kept = next((i for i in range(len(own), 0, -1) if own[i - 1] == leading[i - 1] != 1), 0)
    if all(own[i] == leading[i] for i in range(kept)):
        return x.reshape(*own[:kept], x.shape[-1]), math.prod(leading[kept:])
    return x.expand(*leading, x.shape[-1]), 1
