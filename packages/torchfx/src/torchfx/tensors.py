"""Tensors as people and transforms hand them over: what can be read, what is a signal, what are coefficients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx._ops.checks import FLOAT32, FLOAT64, STRIDED, broadcast_shapes, check_dense, check_stable, not_float
from torchfx._ops.observers import dual_level_active, is_wrapped, modes_active
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "broadcast_shapes",
    "check_signal",
    "coefficients",
    "columns",
    "cut",
    "in_rows",
    "is_readable",
    "joined",
    "lacks_float64",
    "latest",
    "no_device",
    "on_device",
    "sections",
    "settings_on",
    "through_cpu",
]

HALVES = (torch.float16, torch.bfloat16)


def is_readable(tensor: Tensor) -> bool:
    """Return whether a tensor's values are its own and can be read now.

    Not so for fake and meta tensors, while a program is traced, and for tensors that torch.func's transforms or
    forward-mode differentiation follow.
    """
    return not (
        torch.compiler.is_compiling() or tensor.is_meta or modes_active() or dual_level_active() or is_wrapped(tensor)
    )


def lacks_float64(x: Tensor) -> bool:
    """Return whether a tensor lies on a device without float64, such as Apple's GPUs ("mps")."""
    return not (x.is_cpu or x.is_cuda or x.is_meta or _has_float64(x.device.type))


@cache
def _has_float64(device: str) -> bool:
    try:
        torch.empty(0, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError, NotImplementedError):
        return False
    return True


def through_cpu(process: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Process a signal of a device without float64 on the CPU, and return the result on its device."""
    _warn_of(x.device.type)
    return process(check_signal(x.cpu())).to(x.device)


@cache
def _warn_of(device: str) -> None:
    warnings.warn(
        f"{device!r} has no float64, in which torchfx computes: signals on it are processed on the CPU and returned",
        RuntimeWarning,
        stacklevel=3,
    )


def check_signal(x: Any, half: torch.dtype | None = None) -> Tensor:
    """Return a signal that a processor computes on, or raise unless `x` is a float32 or float64 tensor with samples.

    Args:
        x: what was given.
        half: the half-precision type a module was converted to: such signals are computed on in float32. The same
            goes for any half-precision type under autocast.
    """
    plain = type(x) is Tensor and x.is_cpu and x.layout is STRIDED
    if plain and (x.dtype is FLOAT32 or x.dtype is FLOAT64) and x.numel() and x.dim():
        signal: Tensor = x  # nearly every call: what follows takes twice as long
        return signal
    if not isinstance(x, Tensor):
        hint = "a Wave is piped: wave | module" if type(x).__name__ == "Wave" else "convert it with torch.as_tensor"
        raise ArgumentTypeError(f"x must be a tensor (..., time), got {type(x).__name__}; {hint}")
    check_dense(x)
    if not x.is_cpu and lacks_float64(x):
        raise ArgumentError(
            f"x must lie on a device that has float64, got {str(x.device)!r}; processors take it through the CPU, "
            f"for functions move it: x.cpu()"
        )
    if x.dtype in HALVES and (x.dtype == half or torch.is_autocast_enabled(x.device.type)):
        x = x.float()
    if x.is_complex():
        raise ArgumentTypeError(f"x must be real, got {x.dtype}; process real and imaginary part apart")
    if x.dtype != torch.float32 and x.dtype != torch.float64:
        raise not_float("x", x.dtype)
    if x.dim() == 0 or x.shape[-1] == 0:
        raise ArgumentError(f"x must hold samples, shape (..., time), got the empty shape {tuple(x.shape)}")
    checked: Tensor = x
    return checked


def settings_on(values: float | Sequence[float] | Tensor, device: torch.device) -> Tensor:
    """Return numbers, or what was computed from them, as a float64 tensor on a device; it must not be changed.

    A GPU's are kept there by their values: copying them waits for the device, and can't be part of a CUDA graph.
    """
    if isinstance(values, Tensor) and (values.device.type != "cpu" or values.requires_grad or not is_readable(values)):
        return values.to(device, torch.float64)
    if device.type == "cpu" or torch.compiler.is_compiling() or modes_active():
        return torch.as_tensor(values, dtype=torch.float64, device=device)
    array = np.asarray(values, dtype=np.float64)
    return _kept(array.tobytes(), array.shape, device)


@lru_cache(maxsize=256)
def _kept(values: bytes, shape: tuple[int, ...], device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(np.frombuffer(values).reshape(shape), device=device)


def columns(values: Sequence[float | Tensor], device: torch.device) -> Tensor:
    """Return numbers, or tensors (...) that broadcast, as one float64 tensor (..., n)."""
    plain = [value for value in values if not isinstance(value, Tensor)]
    if len(plain) == len(values):
        return settings_on(plain, device)
    found = [settings_on(value, device) for value in values]
    return torch.stack(torch.broadcast_tensors(*found), dim=-1)


def latest(past: Tensor, x: Tensor) -> Tensor:
    """Return the last samples of a signal (..., time) after its past (..., kept): as many, in separate memory."""
    time, kept = x.shape[-1], past.shape[-1]
    x = x.expand(*past.shape[:-1], time)
    return x[..., time - kept :].clone() if time >= kept else torch.cat([past[..., time:], x], dim=-1)


# Lengths are variables where `torch.export` follows a signal of any length. A slice or a view would compare them, and
# the exporter refuses what it cannot prove for all lengths: there, samples are gathered.


def cut(x: Tensor, start: int, length: int, dim: int = -1) -> Tensor:
    """Return a range of a dimension, by its start and length."""
    if isinstance(length, int):
        return x.narrow(dim, start, length)
    return x.index_select(dim, torch.arange(start, start + length, device=x.device))


def in_rows(x: Tensor, width: int) -> Tensor:
    """Return a signal (..., time) as rows (..., time // width, width); what is left at the end is left out."""
    count = x.shape[-1] // width
    if isinstance(count, int):
        return x.narrow(-1, 0, count * width).view(*x.shape[:-1], count, width)
    return x[..., width * torch.arange(count, device=x.device)[:, None] + torch.arange(width, device=x.device)]


def joined(rows: Tensor, length: int) -> Tensor:
    """Return the first samples (..., length) of rows (..., count, width), one after the other."""
    if isinstance(length, int):
        return rows.flatten(-2).narrow(-1, 0, length)
    places = torch.arange(length, device=rows.device)
    return rows[..., places // rows.shape[-1], places % rows.shape[-1]]


def coefficients(name: str, values: Sequence[Any] | npt.NDArray[Any] | Tensor) -> Tensor:
    """Return coefficients (..., n) as a tensor: one that is learned as it is, everything else as a float64 copy."""
    found = values if isinstance(values, Tensor) else _from_array(name, values)
    if found.is_complex():
        raise ArgumentTypeError(f"{name} must be real, got {found.dtype}")
    if found.dim() == 0 or found.shape[-1] == 0:
        raise ArgumentError(f"{name} must have the shape (..., n >= 1), got {tuple(found.shape)}")
    if not isinstance(values, Tensor) or not is_readable(found):
        return found
    if not bool(torch.isfinite(found).all()):
        raise ArgumentError(f"{name} must hold finite numbers, got NaN or infinity")
    return found if found.requires_grad else found.detach().to(torch.float64, copy=True)


def sections(name: str, values: Sequence[Any] | npt.NDArray[Any] | Tensor) -> Tensor:
    """Return second-order sections (..., n, 6) likewise; each must be stable."""
    found = coefficients(name, values)
    if found.dim() < 2 or found.shape[-1] != 6 or found.shape[-2] == 0:
        raise ArgumentError(
            f"{name} must have the shape (..., sections >= 1, 6), rows b0 b1 b2 a0 a1 a2, got {tuple(found.shape)}"
        )
    if is_readable(found):
        check_stable(found)
    return found


def _from_array(name: str, values: Any) -> Tensor:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ArgumentError(f"{name} must have the shape (..., n >= 1): {error}") from error
    if array.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"{name} must hold real numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must hold finite numbers, got NaN or infinity")
    return torch.tensor(array, dtype=torch.float64, device="cpu")


def on_device(tensor: Tensor, device: str | torch.device) -> Tensor:
    """Return the tensor on a device, or raise naming the device where PyTorch does not have it."""
    try:
        moved = tensor.to(device=torch.device(device))
    except (RuntimeError, AssertionError) as error:
        raise no_device(error, device) from error
    except TypeError:
        raise ArgumentTypeError(
            f'device must be a torch.device or a name such as "cpu", got {device!r} ({type(device).__name__})'
        ) from None
    return moved


def no_device(error: Exception, device: str | torch.device = "") -> ArgumentError:
    """Return the error for a device that PyTorch does not have, since PyTorch has no exception for it."""
    got = f", got {str(device)!r}" if device else ""
    return ArgumentError(f"device must be one that PyTorch has here{got}: {str(error).strip().splitlines()[0]}")
