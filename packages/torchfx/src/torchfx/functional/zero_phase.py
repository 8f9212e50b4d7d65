"""Filtering forwards and then backwards: no phase, twice the attenuation; edges as SciPy treats them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from torchfx import _ops
from torchfx._ops.zero_phase.composite import settled_sections, settled_state
from torchfx._ops.zero_phase.schema import EXTENSIONS
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError
from torchfx.functional.filtering import checked_axis, lfilter, placed, polynomials, transfer_function
from torchfx.tensors import check_signal, is_readable

if TYPE_CHECKING:
    from torchfx.functional.filtering import Coefficients

__all__ = ["filtfilt", "lfilter_zi", "sosfilt_zi", "sosfiltfilt"]


def filtfilt(
    b: Coefficients,
    a: Coefficients,
    x: Tensor,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Tensor:
    """Filter forwards and backwards, like `scipy.signal.filtfilt`.

    Args:
        b, a: coefficients (..., n), as in `lfilter`.
        x: float32 or float64, time along `axis`.
        axis: the axis to filter along.
        padtype: how the signal continues beyond its edges: "odd", "even", "constant", or None for not at all.
        padlen: by how many samples, fewer than the signal has; None: 3 max(len(a), len(b)).
        method: "pad" extends the signal as `padtype` and `padlen` say, and starts each time from the state settled on
            the first sample. "gust" extends nothing: it starts from the states with which filtering forwards first or
            backwards first makes the least difference (Gustafsson, "Determining the initial states in forward-backward
            filtering", IEEE Transactions on Signal Processing 44, 1996).
        irlen: for "gust", after how many samples the filter's response counts as over; None: never. The states are
            solved for with matrices of this number of rows, or of the signal's length.

    Returns:
        The output like x.

    Raises:
        ArgumentError: for "pad", a signal that is no longer than `padlen`, an unknown `padtype`, a pole at 0 Hz; an
            unknown method.

    Examples:
        >>> impulse = torch.zeros(41)
        >>> impulse[20] = 1.0
        >>> smooth = filtfilt([0.25], [1.0, -0.75], impulse)
        >>> bool(torch.allclose(smooth, smooth.flip(-1), atol=1e-3))  # no phase: the response is symmetric
        True
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    if method not in ("pad", "gust"):
        raise ArgumentError(f"method must be pad or gust, got {method!r}")
    b, a, sos, _ = transfer_function(b, a, x)
    x = x.movedim(axis, -1)
    if method == "gust":
        return _from_best_states(b, a, x, irlen).movedim(-1, axis)
    edge = _pad_length(x, padtype, padlen, 3 * b.shape[-1])
    if sos is not None:
        return _ops.sos_zero_phase(x, sos, edge, padtype or "odd").movedim(-1, axis)
    _check_zero_frequency(a)
    return _ops.lfilter_zero_phase(x, b, a, edge, padtype or "odd").movedim(-1, axis)


def sosfiltfilt(
    sos: Coefficients, x: Tensor, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Tensor:
    """Filter forwards and backwards through second-order sections, like `scipy.signal.sosfiltfilt`.

    Args:
        sos: (..., sections, 6), as in `sosfilt`.
        x, axis, padtype: as in `filtfilt`.
        padlen: as in `filtfilt`; None: 3 (2 sections + 1), less 3 for each section of first order.

    Returns:
        The output like x.

    Raises:
        ArgumentError: as `filtfilt`; an unstable section.

    Examples:
        >>> from scipy import signal
        >>> sos = signal.butter(4, 1000, fs=48_000, output="sos")
        >>> ones = torch.ones(2, 100)
        >>> bool((sosfiltfilt(sos, ones) - ones).abs().max() < 1e-6)
        True
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    rows = _sections(sos, x)
    shortened = 0
    if padlen is None and padtype is not None and is_readable(rows):
        ends = rows.detach()[..., [2, 5]].reshape(-1, rows.shape[-2], 2).tolist()
        shortened = min(sum(all(row[k][j] == 0 for row in ends) for k in range(rows.shape[-2])) for j in (0, 1))
    x = x.movedim(axis, -1)
    edge = _pad_length(x, padtype, padlen, 3 * (2 * rows.shape[-2] + 1 - shortened))
    return _ops.sos_zero_phase(x, rows, edge, padtype or "odd").movedim(-1, axis)


def lfilter_zi(b: Coefficients, a: Coefficients) -> Tensor:
    """Return the state in which `lfilter` has settled on a constant input of 1, like `scipy.signal.lfilter_zi`.

    Args:
        b, a: coefficients (..., n).

    Returns:
        float64, (..., max(len(a), len(b)) - 1), on the coefficients' device.

    Raises:
        ArgumentError: a pole at 0 Hz (the coefficients of `a` sum to zero), which has no initial state.

    Examples:
        >>> lfilter_zi([0.25], [1.0, -0.75])
        tensor([0.7500], dtype=torch.float64)
    """
    like = next((each for each in (b, a) if isinstance(each, Tensor)), torch.empty(0, device="cpu"))
    b, a = polynomials(b, a, like)
    _check_zero_frequency(a)
    return settled_state(b, a)


def sosfilt_zi(sos: Coefficients) -> Tensor:
    """Return the state in which `sosfilt` has settled on a constant input of 1, like `scipy.signal.sosfilt_zi`.

    Args:
        sos: (..., sections, 6).

    Returns:
        float64, (sections, ..., 2), on the sections' device.

    Examples:
        >>> sosfilt_zi([[0.25, 0.0, 0.0, 1.0, -0.75, 0.0]])
        tensor([[0.7500, 0.0000]], dtype=torch.float64)
    """
    like = sos if isinstance(sos, Tensor) else torch.empty(0, device="cpu")
    rows = _sections(sos, like)
    for a in rows[..., 3:].unbind(-2):
        _check_zero_frequency(a)
    return settled_sections(rows)


def _sections(sos: Coefficients, x: Tensor) -> Tensor:
    """Return sections (..., n, 6) where the signal is."""
    rows = placed("sos", sos, x)
    if rows.dim() < 2 or rows.shape[-1] != 6:
        raise ArgumentError(f"sos must have the shape (..., sections >= 1, 6), got {tuple(rows.shape)}")
    return rows


def _check_zero_frequency(a: Tensor) -> None:
    total = a.sum(-1)
    if is_readable(total) and not bool(total.all()):
        raise ArgumentError("a must have no pole at 0 Hz, got coefficients that sum to zero")


def _pad_length(x: Tensor, padtype: str | None, padlen: int | None, default: int) -> int:
    """Return by how many samples the signal (..., time) is extended."""
    if padtype is not None and padtype not in EXTENSIONS:
        raise ArgumentError(f"padtype must be one of {', '.join(EXTENSIONS)} or None, got {padtype!r}")
    edge = 0 if padtype is None else default if padlen is None else whole_number("padlen", padlen, 0)
    if x.shape[-1] <= edge:
        raise ArgumentError(f"x must be longer than padlen = {edge} samples, got {x.shape[-1]}")
    return edge


def _from_best_states(b: Tensor, a: Tensor, x: Tensor, irlen: int | None) -> Tensor:
    """Filter a signal (..., time) both ways from the states with which the order of the two makes the least difference.

    With O the outputs to states alone, a column for each, R the reversal of time and F the filter, the output forwards
    first is y1 + R F R O s + R O t for states s and t at both ends, that backwards first y2 + O s + F R O t.

    Args:
        b, a: (..., order + 1), a0 = 1.
        x: the signal.
        irlen: as in `filtfilt`.
    """
    wide, order, time = x.double(), b.shape[-1] - 1, x.shape[-1]
    forwards_first: Tensor = lfilter(b, a, lfilter(b, a, wide).flip(-1)).flip(-1)
    if order == 0:
        return forwards_first.to(x.dtype)
    backwards_first = lfilter(b, a, lfilter(b, a, wide.flip(-1)).flip(-1))
    rows = time if irlen is None else whole_number("irlen", irlen, 1)
    whole = time <= 2 * rows
    rows = time if whole else rows
    states = torch.eye(order, dtype=torch.float64, device=x.device)
    b, a = b.unsqueeze(-2), a.unsqueeze(-2)
    shape = torch.broadcast_shapes(b.shape[:-1], a.shape[:-1], (order,))
    alone = lfilter(b, a, x.new_zeros(*shape, rows, dtype=torch.float64), zi=states.expand(*shape, order))[0]
    alone = alone.mT  # (..., rows, order)
    twice = lfilter(b, a, alone.flip(-2).mT).mT
    parts = (twice.flip(-2), alone.flip(-2)), (twice.flip(-2) - alone, alone.flip(-2) - twice)
    effect, difference = (torch.cat(pair, dim=-1) if whole else _beside(*pair) for pair in parts)
    gap = backwards_first - forwards_first
    gap = gap if whole else torch.cat([gap[..., :rows], gap[..., -rows:]], dim=-1)
    solved = _least_squares(difference, gap)
    added = (effect @ solved[..., None])[..., 0]
    if not whole:
        added = torch.cat(
            [added[..., :rows], added.new_zeros(*added.shape[:-1], time - 2 * rows), added[..., rows:]], -1
        )
    return (forwards_first + added).to(x.dtype)


def _beside(first: Tensor, second: Tensor) -> Tensor:
    """Return a block diagonal matrix of two (..., rows, columns)."""
    zeros = torch.zeros_like(first)
    return torch.cat([torch.cat([first, zeros], dim=-1), torch.cat([zeros, second], dim=-1)], dim=-2)


def _least_squares(matrix: Tensor, values: Tensor) -> Tensor:
    """Return the shortest x (..., columns) of those with the least |matrix x - values|; singular ones count as zero."""
    inverse: Tensor = torch.linalg.pinv(matrix, rtol=torch.finfo(matrix.dtype).eps)
    return (inverse @ values[..., None])[..., 0]
