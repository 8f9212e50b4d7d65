"""The finite impulse response in plain PyTorch: overlap-add with SciPy's state, directly or through one transform."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx._ops.checks import check_finite
from torchfx._ops.differentiation import write_gradients
from torchfx._ops.fir import gradient

DIRECT_TAPS = 128  # from here on the transform is faster in plain PyTorch


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the response on any device that has float64."""
    check_finite("taps", taps)
    if y.numel() == 0:
        after.zero_() if state is None else after.copy_(state)
        return
    *leading, time = y.shape
    signal = x.expand(y.shape).reshape(-1, time).double()
    rows = taps if taps.dim() == 1 else taps.expand(*leading, taps.shape[-1])
    rows = rows.reshape(-1, taps.shape[-1])  # one for all channels, or one for each
    start = torch.zeros_like(after) if state is None else state
    # A transform would spread a NaN over the whole channel.
    directly = taps.shape[-1] <= DIRECT_TAPS or not bool(torch.isfinite(signal).all())
    form = direct if directly else through_fft
    out, end = form(signal, rows, start.reshape(signal.shape[0], -1))
    y.copy_(out.reshape(y.shape))
    after.copy_(end.reshape(after.shape))


def fir_backward(grad_y: Tensor, grad_after: Tensor | None, x: Tensor, taps: Tensor, *rest: Any) -> None:
    """Run the definition of the gradients."""
    write_gradients("fir_forward", gradient.backward, (x, taps, None), (grad_y, grad_after), *rest)


def direct(x: Tensor, taps: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 as a sum over taps (rows, n), from `state` (channels, n - 1)."""
    channels, reach = x.shape[0], taps.shape[-1] - 1
    if taps.shape[0] == 1:
        full = torch.nn.functional.conv1d(x[:, None], taps.flip(-1)[:, None], padding=reach)[:, 0]
    else:
        full = torch.nn.functional.conv1d(x[None], taps.flip(-1)[:, None], padding=reach, groups=channels)[0]
    return _split(full, x.shape[-1], state)


def through_fft(x: Tensor, taps: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 as a product of spectra, arguments as those of `direct`."""
    size = x.shape[-1] + taps.shape[-1] - 1
    full = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(taps, size), size)
    return _split(full, x.shape[-1], state)


def _split(full: Tensor, time: int, state: Tensor) -> tuple[Tensor, Tensor]:
    """Add what past input still owed; the first `time` samples are the output, the rest is owed to the future."""
    full = torch.cat([full[:, : state.shape[-1]] + state, full[:, state.shape[-1] :]], dim=-1)
    return full[:, :time], full[:, time:]
