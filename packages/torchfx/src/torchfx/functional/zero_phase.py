"""Filtering forwards and then backwards: no phase, twice the attenuation; edges as SciPy treats them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchfx.checks import whole_number
from torchfx.errors import ArgumentError
from torchfx.functional.filtering import checked_axis, lfilter, placed, polynomials, sosfilt
from torchfx.tensors import check_signal, is_readable

if TYPE_CHECKING:
    from torchfx.functional.filtering import Coefficients

__all__ = ["filtfilt", "lfilter_zi", "sosfilt_zi", "sosfiltfilt"]

EXTENSIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "odd": lambda edge, inner: 2 * edge - inner,
    "even": lambda edge, inner: inner,
    "constant": lambda edge, inner: edge.expand_as(inner),
}
"""What lies beyond an edge, from the edge's sample and the mirrored ones behind it."""


def filtfilt(
    b: Coefficients,
    a: Coefficients,
    x: Tensor,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
) -> Tensor:
    """Filter forwards and backwards, like `scipy.signal.filtfilt` with its method "pad".

    Args:
        b, a: coefficients (..., n), as in `lfilter`.
        x: float32 or float64, time along `axis`.
        axis: the axis to filter along.
        padtype: how the signal goes on beyond its edges: "odd", "even", "constant", or None for not at all.
        padlen: by how many samples, fewer than the signal has; None: 3 max(len(a), len(b)).

    Returns:
        The output like x.

    Raises:
        ArgumentError: a signal that is no longer than `padlen`, an unknown `padtype`, a pole at 0 Hz.

    Examples:
        >>> impulse = torch.zeros(41)
        >>> impulse[20] = 1.0
        >>> smooth = filtfilt([0.25], [1.0, -0.75], impulse)
        >>> bool(torch.allclose(smooth, smooth.flip(-1), atol=1e-3))  # no phase: the response is symmetric
        True
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    b, a = polynomials(b, a, x)
    edge = _pad_length(x, axis, padtype, padlen, 3 * b.shape[-1])
    start = lfilter_zi(b, a)
    return _both_ways(x, axis, padtype, edge, lambda each, first: lfilter(b, a, each, zi=start * first)[0])


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
    rows = placed("sos", sos, x)
    start = sosfilt_zi(rows)
    start = start.reshape(len(start), *[1] * (x.dim() - rows.dim() + 1), *start.shape[1:])  # the signal's dimensions
    shortened = 0
    if padlen is None and is_readable(rows):
        zeros = (rows[..., [2, 5]] == 0).reshape(-1, rows.shape[-2], 2).all(0).sum(0)
        shortened = int(zeros.min())
    edge = _pad_length(x, axis, padtype, padlen, 3 * (2 * rows.shape[-2] + 1 - shortened))
    return _both_ways(x, axis, padtype, edge, lambda each, first: sosfilt(rows, each, zi=start * first)[0])


def lfilter_zi(b: Coefficients, a: Coefficients) -> Tensor:
    """Return the state in which `lfilter` has settled on a constant input of 1, like `scipy.signal.lfilter_zi`.

    Args:
        b, a: coefficients (..., n).

    Returns:
        float64, (..., max(len(a), len(b)) - 1), on the coefficients' device.

    Raises:
        ArgumentError: a pole at 0 Hz (the coefficients of `a` sum to zero), for which there is none.

    Examples:
        >>> lfilter_zi([0.25], [1.0, -0.75])
        tensor([0.7500], dtype=torch.float64)
    """
    like = next((each for each in (b, a) if isinstance(each, Tensor)), torch.empty(0, device="cpu"))
    b, a = polynomials(b, a, like)
    total = a.sum(-1, keepdim=True)
    if is_readable(total) and not bool(total.all()):
        raise ArgumentError("a must have no pole at 0 Hz, got coefficients that sum to zero")
    # What is still to come of input and output at rest: state k holds b[j] - a[j] y for all j > k, y being the output.
    coming = b - a * (b.sum(-1, keepdim=True) / total)
    return coming[..., 1:].flip(-1).cumsum(-1).flip(-1)


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
    rows = placed("sos", sos, like)
    if rows.dim() < 2 or rows.shape[-1] != 6:
        raise ArgumentError(f"sos must have the shape (..., sections >= 1, 6), got {tuple(rows.shape)}")
    states, level = [], rows.new_ones(rows.shape[:-2])
    for row in rows.unbind(-2):
        states.append(lfilter_zi(row[..., :3], row[..., 3:]) * level[..., None])
        level = level * row[..., :3].sum(-1) / row[..., 3:].sum(-1)
    return torch.stack(states)


def _pad_length(x: Tensor, axis: int, padtype: str | None, padlen: int | None, default: int) -> int:
    """Return by how many samples the signal is extended."""
    if padtype is not None and padtype not in EXTENSIONS:
        raise ArgumentError(f"padtype must be one of {', '.join(EXTENSIONS)} or None, got {padtype!r}")
    edge = 0 if padtype is None else default if padlen is None else whole_number("padlen", padlen, 0)
    if x.shape[axis] <= edge:
        raise ArgumentError(f"x must be longer than padlen = {edge} samples, got {x.shape[axis]}")
    return edge


def _both_ways(x: Tensor, axis: int, padtype: str | None, edge: int, run: Callable[[Tensor, Tensor], Any]) -> Tensor:
    """Run a filter over the extended signal and over its reversed output, in float64.

    Args:
        x, axis, padtype, edge: as above.
        run: filters (..., time) from the state it has settled in on the first sample, (..., 1).
    """
    wide = x.movedim(axis, -1).double()
    if edge and padtype is not None:
        beyond = EXTENSIONS[padtype]
        left = beyond(wide[..., :1], wide[..., 1 : edge + 1].flip(-1))
        right = beyond(wide[..., -1:], wide[..., -edge - 1 : -1].flip(-1))
        wide = torch.cat([left, wide, right], dim=-1)
    for _ in range(2):
        wide = run(wide, wide[..., :1]).flip(-1)
    return wide[..., edge : wide.shape[-1] - edge].to(x.dtype).movedim(-1, axis)
