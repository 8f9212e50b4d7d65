"""Checks of tensors at the operators' door: raised before any sample is touched.

They run at every call of a few microseconds, hence `is` for dtypes and `dim()` for `ndim`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx.errors import ArgumentError, ArgumentTypeError, TorchFXError

__all__ = [
    "broadcast",
    "broadcast_shapes",
    "check_coefficients",
    "check_dense",
    "check_finite",
    "check_signal",
    "check_stable",
    "check_state",
    "gradient_shapes",
    "leading_dimensions",
    "not_float",
]

SAMPLES = (torch.uint8, torch.int8, torch.int16, torch.int32)
"""Integers that audio files hold; their full scale is the type's range."""

FLOAT32, FLOAT64, STRIDED = torch.float32, torch.float64, torch.strided


def check_signal(x: Tensor) -> None:
    """Raise unless `x` is a dense float32 or float64 tensor (..., time)."""
    check_dense(x)
    dtype = x.dtype
    if dtype is not FLOAT32 and dtype is not FLOAT64:
        if x.is_complex():
            raise ArgumentTypeError(f"x must be real, got {x.dtype}; process real and imaginary part apart")
        raise not_float("x", dtype)
    if x.dim() == 0:
        raise ArgumentError("x must have the shape (..., time), got a tensor without dimensions")


def not_float(name: str, dtype: torch.dtype) -> ArgumentTypeError:
    """Return the error for samples of another type, which says how to convert them."""
    how = f"convert it first, e.g. {name}.float()"
    if dtype.is_floating_point:
        how += " (half precision would lose the filter's state)"
    elif dtype in SAMPLES:
        half = 1 << (torch.iinfo(dtype).bits - 1)
        unsigned = torch.iinfo(dtype).min == 0
        scaled = f"({name}.double() - {half}) / {half}" if unsigned else f"{name}.double() / {half}"
        how = f"a Wave maps integers to [-1, 1); by hand: ({scaled}).float()"
    return ArgumentTypeError(f"{name} must be float32 or float64, got {dtype}; {how}")


def check_dense(x: Tensor) -> None:
    """Raise where a tensor has no element for each sample in memory."""
    if x.layout is not STRIDED:
        raise ArgumentTypeError(f"x must be a dense tensor, got the layout {x.layout}; convert it first: x.to_dense()")


def check_coefficients(name: str, values: Tensor, shape: str, core: Sequence[int | None], x: Tensor) -> None:
    """Raise unless coefficients are float64, end in these dimensions (None: any size >= 1) and lie where x lies."""
    if values.dtype is not FLOAT64:
        raise ArgumentTypeError(f"{name} must be float64, got {values.dtype}")
    own = values.shape[-len(core) :]
    fits = len(own) == len(core)
    for size, want in zip(own, core, strict=False):
        fits = fits and (size == want if want else size >= 1)
    if not fits:
        raise ArgumentError(f"{name} must have the shape {shape}, got {tuple(values.shape)}")
    _check_device(name, values, x)


def leading_dimensions(name: str, values: Tensor, core: int, x: Tensor) -> Sequence[int]:
    """Return the result's leading dimensions: those of the signal and the coefficients, broadcast."""
    if values.dim() == core:
        return x.shape[:-1]
    own, leading = values.shape[: values.dim() - core], x.shape[:-1]
    if own == leading:
        return leading
    try:
        return broadcast(leading, own)
    except RuntimeError:
        raise ArgumentError(
            f"{name}'s leading dimensions must broadcast with the signal's {tuple(x.shape[:-1])}, got {tuple(own)}"
        ) from None


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return what shapes broadcast to, as `torch.broadcast_shapes`, which takes longer than a short block's filter."""
    found: tuple[int, ...] = ()
    for shape in map(tuple, shapes):
        if shape == found or not shape:
            continue
        long, short = (shape, found) if len(shape) > len(found) else (found, shape)
        start, joined = len(long) - len(short), []
        for a, b in zip(long[start:], short, strict=True):
            if type(a) is not int or type(b) is not int or (a != b and a != 1 and b != 1):
                return tuple(torch.broadcast_shapes(*map(tuple, shapes)))  # it knows symbols, and raises
            joined.append(a if b == 1 else b)
        found = (*long[:start], *joined)
    return found


def broadcast_shapes(**shapes: Sequence[int]) -> tuple[int, ...]:
    """Return what shapes broadcast to, or raise naming them."""
    try:
        return broadcast(*shapes.values())
    except RuntimeError:
        given = ", ".join(f"{tuple(shape)} of {name}" for name, shape in shapes.items())
        raise ArgumentError(f"leading dimensions must broadcast with each other, got {given}") from None


def check_state(state: Tensor, shape: Sequence[int], x: Tensor, name: str = "state") -> None:
    """Raise unless a state is float64 of exactly this shape and lies where x lies."""
    if state.dtype is not FLOAT64:
        raise ArgumentTypeError(f"{name} must be float64, got {state.dtype}")
    if tuple(state.shape) != tuple(shape):
        raise ArgumentError(f"{name} must have the shape {tuple(shape)} (SciPy's zi), got {tuple(state.shape)}")
    _check_device(name, state, x)


def gradient_shapes(
    forward: Sequence[tuple[Sequence[int], torch.dtype]],
    x: Tensor,
    coefficients: Tensor,
    needed: Sequence[bool],
    grad_after: Tensor | None,
    **like_y: Tensor,
) -> Sequence[tuple[Sequence[int], torch.dtype]]:
    """Return shape and dtype of the gradients of signal, coefficients and state before; what is not needed is empty.

    `forward` are those of output and state after; `grad_after` is the latter's gradient, and `like_y` are checked to
    have the output's shape.
    """
    (y_shape, _), after = forward
    for name, tensor in like_y.items():
        if tuple(tensor.shape) != tuple(y_shape) or tensor.dtype != x.dtype:
            raise TorchFXError(f"{name} must be {x.dtype} of shape {tuple(y_shape)}, got {tuple(tensor.shape)}")
    if grad_after is not None:
        check_state(grad_after, after[0], x, "grad_after")
    found = (x.shape, x.dtype), (coefficients.shape, coefficients.dtype), after
    return tuple((shape if need else (0,), dtype) for need, (shape, dtype) in zip(needed, found, strict=True))


def check_finite(name: str, values: Tensor) -> None:
    """Raise when a coefficient on the CPU is NaN or infinite: reading others would wait for their device."""
    if not values.is_cpu or math.isfinite(values.sum().item()):  # so are its terms; one sum takes a third of the time
        return
    bad = (~torch.isfinite(values)).nonzero()
    if len(bad):
        where = tuple(bad[0].tolist())
        raise ArgumentError(f"{name} must be finite, got {float(values[where])} at index {list(where)}")


def check_stable(sos: Tensor) -> None:
    """Raise when a section has no finite coefficients, a0 = 0, or a pole on or outside the unit circle.

    The poles of 1 + a1/z + a2/z^2 lie inside exactly when |a2| < 1 and |a1| < 1 + a2 (the stability triangle).
    """
    rows = sos.reshape(-1, sos.shape[-2], 6).tolist()
    for i, row in enumerate(rows):
        for k, section in enumerate(row):
            if not math.isfinite(sum(section)):
                check_finite("sos", sos)
            _, _, _, a0, a1, a2 = section
            where = f"section {k}" + (f" of row {i}" if len(rows) > 1 else "")
            if a0 == 0:
                raise ArgumentError(f"sos: {where} has a0 = 0, it must not be zero")
            if not (abs(a2 / a0) < 1 and abs(a1 / a0) < 1 + a2 / a0):
                raise ArgumentError(
                    f"sos: {where} is unstable: its poles must lie inside the unit circle, "
                    f"got a = [{a0:.17g}, {a1:.17g}, {a2:.17g}]"
                )


def _check_device(name: str, other: Tensor, x: Tensor) -> None:
    if not (other.is_cpu and x.is_cpu) and other.device != x.device:
        raise ArgumentError(f"{name} must be on the signal's device {x.device}, got {other.device}")
