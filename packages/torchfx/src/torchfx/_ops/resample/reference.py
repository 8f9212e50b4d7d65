"""Resampling in plain PyTorch: each output is the product of its window with the taps of its phase."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from torchfx._ops.checks import check_finite

__all__ = ["windows"]

MOST = 1 << 22  # samples in windows at a time: 32 MiB


def resample_forward(x: Tensor, taps: Tensor, down: int, origin: int, length: int, y: Tensor) -> None:
    """Resample on any device that has float64."""
    check_finite("taps", taps)
    for first, phases, window in windows(x, taps.shape, down, origin, length):
        y[..., first : first + len(phases)] = (window * taps[phases]).sum(-1)


def windows(x: Tensor, shape: torch.Size, down: int, origin: int, length: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield, for runs of outputs, the first one, their phases (run,) and their inputs (..., run, n), latest first.

    Args:
        x: (..., time).
        shape: of the taps, (up, n).
        down, origin, length: the operator's.
    """
    up, n = shape
    run = max(1, MOST // max(1, n * x[..., 0].numel())) if x.shape[-1] else length
    for first in range(0, length, run):
        at = torch.arange(first, min(first + run, length), device=x.device) * down + origin
        last, start = at.div(up, rounding_mode="floor"), (first * down + origin) // up - (n - 1)
        stop = ((min(first + run, length) - 1) * down + origin) // up + 1
        inside = x[..., max(start, 0) : max(stop, 0)].double()
        before = min(max(0, -start), stop - start)
        padded = torch.nn.functional.pad(inside, (before, stop - start - before - inside.shape[-1]))
        yield first, at.remainder(up), padded.unfold(-1, n, 1)[..., last - (start + n - 1), :].flip(-1)
