"""Frames that overlap by three quarters, their Fourier transforms, and overlap-add."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx.functional.stretching import OVERLAP
from torchfx.tensors import in_rows, joined

__all__ = ["added_frames", "frames_of", "transformed"]


def frames_of(x: Tensor, hop: int) -> Tensor:
    """Return the frames (..., frames, OVERLAP hop) of a signal's whole number of hops.

    `Tensor.unfold` does the same; PyTorch 2.13 has no rule for its derivative under `torch.vmap`, and warns.
    """
    pieces = in_rows(x, hop)
    count = pieces.shape[-2] - OVERLAP + 1
    return torch.cat([pieces[..., i : i + count, :] for i in range(OVERLAP)], dim=-1)


def transformed(transform: Callable[[Tensor], Tensor], frames: Tensor) -> Tensor:
    """Return the transforms of frames (..., frames, n); where their number is `torch.export`'s variable, row by row.

    PyTorch joins all dimensions but the last, which the exporter does not accept of a variable beside others.
    """
    if isinstance(frames.shape[-2], int) or frames.dim() == 2:
        return transform(frames)
    rows = [transform(row) for row in frames.flatten(0, -3).unbind()]
    return torch.stack(rows).unflatten(0, frames.shape[:-2])


def added_frames(frames: Tensor) -> Tensor:
    """Return the sum (..., time) of frames (..., frames, n), each a hop after the one before."""
    pieces = frames.unflatten(-1, (OVERLAP, frames.shape[-1] // OVERLAP))
    rows = pad(pieces[..., 0, :], (0, 0, 0, OVERLAP - 1))
    for i in range(1, OVERLAP):
        rows = rows + pad(pieces[..., i, :], (0, 0, i, OVERLAP - 1 - i))
    return joined(rows, rows.shape[-2] * rows.shape[-1])
