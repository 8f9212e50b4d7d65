"""`lfilter`, `sosfilt`, `biquad` and `fftconvolve`: one pass over a signal, with or without a state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops
from torchfx._ops.again import Again
from torchfx._ops.lfilter.cpu import lfilter_again
from torchfx._ops.operator import is_native
from torchfx.errors import ArgumentError
from torchfx.tensors import broadcast_shapes, check_signal, coefficients, is_readable

if TYPE_CHECKING:
    import numpy.typing as npt

    Coefficients = Sequence[Any] | npt.NDArray[np.floating[Any]] | Tensor

__all__ = ["biquad", "checked_axis", "fftconvolve", "lfilter", "placed", "polynomials", "sosfilt", "transfer_function"]


def lfilter(b: Coefficients, a: Coefficients, x: Tensor, axis: int = -1, zi: Coefficients | None = None) -> Any:
    """Filter a signal with the transfer function (b0 + b1/z + ...) / (a0 + a1/z + ...), like `scipy.signal.lfilter`.

    Filters up to order 2 run as a second-order section, others as the recursion itself; both in float64. Filters of
    high order are more exact as sections (`sosfilt`). Unstable ones, such as a sum, are run as they are.

    Args:
        b, a: coefficients (..., n); tensors may require a gradient. Leading dimensions broadcast with the signal's.
        x: float32 or float64, time along `axis`.
        axis: the axis to filter along.
        zi: float64, the state before, as `x` but max(len(a), len(b)) - 1 long along `axis`; None starts from rest.

    Returns:
        The output like x; with `zi` also the state after it, from which the next block continues.

    Raises:
        ArgumentError: a0 = 0, coefficients that are not finite, a wrong shape.

    Examples:
        >>> x = torch.tensor([1.0, 0.0, 0.0, 0.0])
        >>> lfilter([0.5], [1.0, -0.5], x)
        tensor([0.5000, 0.2500, 0.1250, 0.0625])
        >>> y, state = lfilter([0.5], [1.0, -0.5], x[:2], zi=torch.zeros(1, dtype=torch.float64))
        >>> lfilter([0.5], [1.0, -0.5], x[2:], zi=state)[0]
        tensor([0.1250, 0.0625])
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    b, a, sos, last = transfer_function(b, a, x)
    from_rest = zi is None and axis == -1 and sos is None
    if from_rest and last:
        y = last[0](x)
        if y is not None:
            return y
    if axis != -1:
        x = x.movedim(axis, -1)
    order = b.shape[-1] - 1
    state: Tensor | None = None
    leading: tuple[int, ...] = x.shape[:-1]
    if b.dim() > 1 or a.dim() > 1:
        leading = broadcast_shapes(x=leading, b=b.shape[:-1], a=a.shape[:-1])
    if zi is not None:
        state = _state(zi, axis, (), leading, order, x)
    if sos is None:
        y, after = _ops.lfilter_forward(x, b, a, state)
        if from_rest and last is not None:
            last[:] = lfilter_again(x, b, a)
    else:
        y, after = _ops.parallel_iir_forward(x, sos, None if state is None else pad(state, (0, 2 - order))[None])
    if axis != -1:
        y = y.movedim(-1, axis)
    return y if zi is None else (y, (after if sos is None else after[0, ..., :order]).movedim(-1, axis))


def sosfilt(sos: Coefficients, x: Tensor, axis: int = -1, zi: Coefficients | None = None) -> Any:
    """Filter a signal through second-order sections, like `scipy.signal.sosfilt`: one operator call at any depth.

    Args:
        sos: (..., sections, 6), rows b0 b1 b2 a0 a1 a2; a tensor may require a gradient. Leading dimensions broadcast
            with the signal's.
        x: float32 or float64, time along `axis`.
        axis: the axis to filter along.
        zi: float64, the state before, (sections, ...) and then as `x` but 2 long along `axis`; None starts from rest.

    Returns:
        The output like x; with `zi` also the state after it.

    Raises:
        ArgumentError: an unstable section, a0 = 0, coefficients that are not finite, a wrong shape.

    Examples:
        >>> from scipy import signal
        >>> sos = signal.butter(4, 1000, fs=48_000, output="sos")
        >>> sosfilt(sos, torch.ones(2, 100)).shape
        torch.Size([2, 100])
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    rows = placed("sos", sos, x)
    x = x.movedim(axis, -1)
    if zi is None:
        return _ops.parallel_iir_forward(x, rows)[0].movedim(-1, axis)
    leading = broadcast_shapes(x=x.shape[:-1], sos=rows.shape[:-2])
    state = _state(zi, axis, (rows.shape[-2],), leading, 2, x)
    y, after = _ops.parallel_iir_forward(x, rows, state)
    return y.movedim(-1, axis), after.movedim(-1, axis)


def biquad(
    waveform: Tensor,
    b0: float | Tensor,
    b1: float | Tensor,
    b2: float | Tensor,
    a0: float | Tensor,
    a1: float | Tensor,
    a2: float | Tensor,
) -> Tensor:
    """Filter a signal (..., time) through one second-order section, with torchaudio's arguments; nothing is clamped.

    Args:
        waveform: float32 or float64, (..., time).
        b0, b1, b2, a0, a1, a2: numbers, or tensors (...) that broadcast with the signal's leading dimensions.

    Returns:
        The output like `waveform`.

    Examples:
        >>> biquad(torch.tensor([1.0, 0.0, 0.0]), 1.0, 0.0, 0.0, 1.0, torch.tensor(-0.5), 0.0)
        tensor([1.0000, 0.5000, 0.2500])
    """
    waveform = check_signal(waveform)
    values = (torch.as_tensor(each, dtype=torch.float64, device=waveform.device) for each in (b0, b1, b2, a0, a1, a2))
    row = torch.stack(torch.broadcast_tensors(*values), dim=-1)
    found: Tensor = lfilter(row[..., :3], row[..., 3:], waveform)
    return found


def fftconvolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """Convolve along the last axis, like `scipy.signal.fftconvolve(x, y, mode, axes=-1)` and torchaudio's function.

    Short responses are summed directly, long ones transformed; both in float64.

    Args:
        x, y: float32 or float64, (..., n) and (..., m); leading dimensions broadcast.
        mode: "full" (n + m - 1 samples), "same" (the n in the middle), or "valid" (those that need no zeros around).

    Returns:
        (..., samples), of the wider of both types.

    Examples:
        >>> fftconvolve(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 1.0]))
        tensor([1., 3., 5., 3.])
    """
    x, y = check_signal(x), check_signal(y)
    n, m = x.shape[-1], y.shape[-1]
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"mode must be one of full, same, valid, got {mode!r}")
    signal, taps = (x, y) if n >= m else (y, x)
    broadcast_shapes(x=x.shape[:-1], y=y.shape[:-1])
    dtype = torch.promote_types(x.dtype, y.dtype)
    whole = _ops.fir_forward(pad(signal.to(dtype), (0, taps.shape[-1] - 1)), taps.double())[0]
    if mode == "full":
        return whole
    start, count = ((m - 1) // 2, n) if mode == "same" else (min(n, m) - 1, abs(n - m) + 1)
    return whole[..., start : start + count]


def placed(name: str, values: Coefficients, x: Tensor) -> Tensor:
    """Return coefficients as a float64 tensor where the signal is, with their gradient."""
    given = [values] if isinstance(values, (int, float)) else values
    found = given if isinstance(given, Tensor) and given.is_floating_point() else coefficients(name, given)
    return found.to(x.device, torch.float64)


class Transfer(NamedTuple):
    """A transfer function.

    Attributes:
        b, a: float64 (..., order + 1), divided by a0.
        sos: the same as (..., 1, 6), where it is stable and of order 2 at most.
        last: what filters signals like the last one from rest, if there is something; None where it is not kept.
    """

    b: Tensor
    a: Tensor
    sos: Tensor | None
    last: list[Again] | None = None


def transfer_function(b: Coefficients, a: Coefficients, x: Tensor) -> Transfer:
    """Return a transfer function for a signal; that of the same numbers is kept.

    Making one takes 25 us, more than filtering a short signal; finding it 1 us.
    """
    if x.is_cpu and not torch.compiler.is_dynamo_compiling() and is_native(x):
        above, below = _numbers(b), _numbers(a)
        if above is not None and below is not None:
            return _kept(*above, *below)
    return _transfer(*polynomials(b, a, x))


Numbers = tuple[bytes, tuple[int, ...], "np.dtype[Any]", bool]


def _numbers(values: Coefficients) -> Numbers | None:
    """Return coefficients by their values, and whether they came as a tensor; None if their values must be read."""
    if is_tensor := isinstance(values, Tensor):
        if values.requires_grad or not (values.is_cpu and values.is_floating_point() and is_native(values)):
            return None
        array = values.numpy()
    elif isinstance(values, np.ndarray):
        array = values
    elif isinstance(values, (list, tuple)) and all(isinstance(value, (int, float)) for value in values):
        array = np.array(values)
    else:
        return None
    return (array.tobytes(), array.shape, array.dtype, is_tensor) if array.nbytes <= 4096 else None


@lru_cache(maxsize=128)
def _kept(
    b: bytes, b_shape: tuple[int, ...], b_dtype: np.dtype[Any], b_is_tensor: bool,
    a: bytes, a_shape: tuple[int, ...], a_dtype: np.dtype[Any], a_is_tensor: bool,
) -> Transfer:  # fmt: skip
    arrays = np.frombuffer(b, b_dtype).reshape(b_shape), np.frombuffer(a, a_dtype).reshape(a_shape)
    with torch.inference_mode(False):
        above, below = (
            torch.tensor(array) if is_tensor else array
            for array, is_tensor in zip(arrays, (b_is_tensor, a_is_tensor), strict=True)
        )
        return _transfer(*polynomials(above, below, torch.empty(0, device="cpu")))._replace(last=[])


def _transfer(b: Tensor, a: Tensor) -> Transfer:
    missing = 3 - b.shape[-1]
    if missing < 0 or not _is_stable(a):
        return Transfer(b, a, None)
    rows = torch.broadcast_tensors(pad(b, (0, missing)), pad(a, (0, missing)))
    return Transfer(b, a, torch.cat(rows, dim=-1).unsqueeze(-2))


def polynomials(b: Coefficients, a: Coefficients, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return numerator and denominator of one length, (..., n), divided by a0."""
    b, a = placed("b", b, x), placed("a", a, x)
    for name, each in (("b", b), ("a", a)):
        if each.dim() == 0 or each.shape[-1] == 0:
            raise ArgumentError(f"{name} must have the shape (..., n >= 1), got {tuple(each.shape)}")
    if is_readable(a) and not bool(a[..., 0].all()):
        raise ArgumentError("a must not begin with zero, got a[0] = 0")
    size = max(b.shape[-1], a.shape[-1])
    broadcast_shapes(b=b.shape[:-1], a=a.shape[:-1])
    first = a[..., :1]
    return pad(b, (0, size - b.shape[-1])) / first, pad(a, (0, size - a.shape[-1])) / first


def checked_axis(axis: int, x: Tensor) -> int:
    """Return an axis of the signal, counted from its end."""
    if type(axis) is int and axis == -1 and x.dim():
        return axis
    if isinstance(axis, bool) or not isinstance(axis, int) or not -x.dim() <= axis < x.dim():
        raise ArgumentError(f"axis must be one of the signal's {x.dim()} dimensions, got {axis!r}")
    return axis - x.dim() if axis >= 0 else axis


def _state(zi: Any, axis: int, sections: tuple[int, ...], leading: tuple[int, ...], size: int, x: Tensor) -> Tensor:
    """Return a state (sections, ..., size) where the signal is, with the output's leading dimensions."""
    state = torch.as_tensor(zi, dtype=torch.float64, device=x.device)
    try:
        return state.movedim(axis, -1).expand(*sections, *leading, size)
    except (RuntimeError, IndexError):
        wanted = torch.empty(*sections, *leading, size, device="meta").movedim(-1, axis)
        raise ArgumentError(f"zi must have the shape {tuple(wanted.shape)}, got {tuple(state.shape)}") from None


def _is_stable(a: Tensor) -> bool:
    """Return whether polynomials of order 2 or less have their poles inside the unit circle, where that can be read."""
    if not is_readable(a):
        return True
    rows = a.detach().reshape(-1, a.shape[-1]).tolist()
    return all(abs(a2) < 1 and abs(a1) < 1 + a2 for a1, a2 in ((*row[1:], 0.0, 0.0)[:2] for row in rows))
