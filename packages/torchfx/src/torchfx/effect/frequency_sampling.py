"""A network of delay lines, computed from its transfer function: for whole signals on a GPU, where a recursion is slow.

With Z the diagonal matrix of the delays' z^-delay and F that of the filters' responses, the network is

    H(z) = C (1 / Z - F A)^-1 B + D

(`_ops/delay_network/schema.py` has the letters). It is sampled at N points z = R e^(2 pi i k / N) and multiplied with
the transform of x[n] R^-n, which gives that of y[n] R^-n. The wrapped part is the network's response N - T samples
later or more, times R^-N. With N >= 2 T and R^-N = 1e-10 that is below 1e-10 of a response that doesn't grow, even if
it never decays; rounding errors of float64 grow by R^T <= 1e5, to about 1e-10. float32 samples hold 6e-8.

Memory: about 60 bytes for each sample of x and of y, 20 for each sample of each pair of an input and an output, and
`CHUNK_BYTES`, for the points that are computed at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from torchfx.tensors import settings_on

__all__ = ["from_rest", "takes"]

LOG_WRAPPED = math.log(1e10)
CHUNK_BYTES = 1 << 30
SHORTEST, MOST_ROWS, MOST_SAMPLES = 1 << 16, 8, 1 << 24
"""Samples of a signal, rows of signals and samples of all of them. The network's kernel takes 88 ns a sample for one
stereo signal through `Reverb` on an H100, whereas the host needs some milliseconds to launch what is launched here; the
kernel runs a program for each signal of a batch at the same time."""


def takes(x: Tensor) -> bool:
    """Return whether this method suits signals (..., time): few, long, float32 and on a GPU."""
    time = x.shape[-1]
    return (
        x.is_cuda and x.dtype is torch.float32 and time >= SHORTEST and x.numel() <= min(MOST_ROWS * time, MOST_SAMPLES)
    )


def from_rest(x: Tensor, delays: Sequence[int], system: Tensor, sos: Tensor | None) -> Tensor:
    """Return the network's output for a whole float32 signal, arguments as those of `delay_network_forward`.

    From the first sample on that isn't finite in any input, the outputs are NaN.
    """
    time = x.shape[-1]
    delays = [min(delay, time) for delay in delays]  # a longer one isn't audible either; z^delay stays finite
    size = _transform_size(2 * time)
    log_radius = LOG_WRAPPED / size
    growth = torch.exp(log_radius * torch.arange(time, dtype=torch.float64, device=x.device))
    finite = x.isfinite()
    spectrum = torch.fft.rfft(x.where(finite, 0).double() / growth, size)
    response = _sampled(delays, system, sos, x.device, size, log_radius)
    y = torch.fft.irfft((response @ spectrum.mT[..., None])[..., 0].mT, size)[..., :time] * growth
    reached = (~finite).any(-2, keepdim=True).cumsum(-1) > 0
    result: Tensor = y.masked_fill(reached, math.nan).to(x.dtype)
    return result


def _transform_size(least: int) -> int:
    """Return an even number of small prime factors, at most 1/4 above the least."""
    unit = 1 << max(1, (least - 1).bit_length() - 4)
    return next(factor * unit for factor in (1, 2, 4, 8, 9, 10, 12, 15, 16) if factor * unit >= least)


def _sampled(
    delays: Sequence[int], system: Tensor, sos: Tensor | None, device: torch.device, size: int, log_radius: float
) -> Tensor:
    """Return H at the first size // 2 + 1 of `size` points on a circle, (..., points, outputs, inputs)."""
    count, levels = len(delays), _levels(system, len(delays))
    rows = max(system.shape[:-2].numel(), 1 if sos is None else sos.shape[:-3].numel())
    values = count * (4 * count if levels is None else 8 + 2 * (system.shape[-1] - count))  # held for each point
    each = max(1, CHUNK_BYTES // (16 * values * rows))
    system, sos = settings_on(system, device), None if sos is None else settings_on(sos, device)
    learned = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (system, sos))
    found = []
    for first in range(0, size // 2 + 1, each):
        places = torch.arange(first, min(first + each, size // 2 + 1), device=device)
        arguments = (delays, levels, system, sos, places, size, log_radius)
        found.append(checkpoint(_at, *arguments, use_reentrant=False) if learned else _at(*arguments))
    return torch.cat(found, dim=-3)


def _levels(system: Tensor, count: int) -> list[list[int]] | None:
    """Return lines by levels: their inputs are themselves and lines of earlier levels; None: there are no such levels.

    A system that lies on another device than the CPU isn't read, as that would wait for the device.
    """
    if not system.is_cpu:
        return None
    reads = (system.detach()[..., :count, :count] != 0).reshape(-1, count, count).any(0).tolist()
    levels: list[list[int]] = []
    rest = list(range(count))
    while rest:
        ready = [i for i in rest if not any(reads[i][j] for j in rest if j != i)]
        if not ready:
            return None
        levels.append(ready)
        rest = [i for i in rest if i not in ready]
    return levels


def _at(
    delays: Sequence[int],
    levels: Sequence[list[int]] | None,
    system: Tensor,
    sos: Tensor | None,
    places: Tensor,
    size: int,
    log_radius: float,
) -> Tensor:
    """Return H at some of the points."""
    count = len(delays)
    lengths = torch.tensor(delays, device=places.device)
    ahead = _powers(places[:, None] * lengths, lengths, size, log_radius)  # 1 / Z, (points, lines)
    if sos is None:
        filters = torch.ones_like(ahead)
    else:
        powers = -torch.arange(3, device=places.device)
        delayed = _powers(places[:, None] * powers, powers, size, log_radius).mT
        b, a = ((sos[..., i : i + 3].to(delayed.dtype) @ delayed).prod(-2) for i in (0, 3))
        filters = (b / a).mT
    whole = system.to(ahead.dtype)
    joined, entrance = whole[..., None, :count, :count], whole[..., None, :count, count:]
    if levels is None:
        lines = torch.linalg.solve(torch.diag_embed(ahead) - filters[..., None] * joined, entrance)
    else:
        known: list[int] = []
        for level in levels:
            given, own = entrance[..., level, :], joined.diagonal(dim1=-2, dim2=-1)[..., level]
            if known:
                given = given + filters[..., level, None] * (joined[..., level, :][..., known] @ lines)
            solved = given / (ahead[..., level] - filters[..., level] * own)[..., None]
            lines = torch.cat([lines, solved], dim=-2) if known else solved
            known = known + level
        lines = lines[..., [known.index(i) for i in range(count)], :]
    response: Tensor = whole[..., None, count:, :count] @ lines + whole[..., None, count:, count:]
    return response


def _powers(turns: Tensor, exponents: Tensor, size: int, log_radius: float) -> Tensor:
    """Return z^exponent = R^exponent e^(2 pi i turns / size); turns are whole numbers, so that no phase is rounded."""
    angle = (turns % size).double() * (2 * math.pi / size)
    return torch.polar(torch.exp(log_radius * exponents.double()).expand_as(angle).contiguous(), angle)
