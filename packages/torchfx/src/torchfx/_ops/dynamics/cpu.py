"""The detectors on the CPU: csrc/dynamics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import broadcast, check_finite
from torchfx._ops.dynamics import composite
from torchfx._ops.dynamics.composite import peaks_of
from torchfx._ops.dynamics.schema import linked
from torchfx._ops.memory import address, coefficient_rows, packed, pass_on, raise_for, signal_rows

why_missing = native.why_missing

OWN = (0, 0, 0, 1)
"""Replaces a key's rows: levels are measured on the signal itself."""


def ballistics_forward(x: Tensor, coefficients: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the detector."""
    if y.numel() == 0:
        pass_on(state, after)
        return
    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    rows, count, rows_repeat = coefficient_rows(coefficients, 1, leading)
    state = None if state is None else packed(state)
    pack, run = native.call["ballistics_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, repeat,
        y.data_ptr(), time, y.numel() // time, time, rows.data_ptr(), count, rows_repeat,
        address(state), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("ballistics_forward", status, "coefficients", coefficients)


def dynamics_forward(
    x: Tensor, key: Tensor | None, settings: Tensor, state: Tensor | None, link: int | None, y: Tensor, after: Tensor
) -> None:
    """Run level, curve, ballistics and product in one pass."""
    if y.numel() == 0:
        pass_on(state, after)
        return
    *leading, time = y.shape
    groups = _groups(leading, after.shape)
    if groups is None:
        _compose("dynamics_forward", (x, key, settings, state, link), (y, after))
        return
    signal = signal_rows(x, leading)
    heard: tuple[int, ...] = OWN
    if key is not None or linked(x, link).shape[:-1] != after.shape:
        key = x if key is None else key
        key, *strides = signal_rows(key if link is None else peaks_of(key, link), after.shape)
        heard = (key.data_ptr(), *strides)
    rows = coefficient_rows(settings, 1, after.shape)
    state = None if state is None else packed(state)
    pack, run = native.call["dynamics_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], *heard,
        y.data_ptr(), time, *groups, time, rows.tensor.data_ptr(), *rows[1:],
        address(state), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("dynamics_forward", status, "settings", settings)


def limiter_forward(
    x: Tensor,
    past: Tensor,
    peaks: Tensor | None,
    settings: Tensor,
    state: Tensor,
    ramp: Tensor,
    link: int | None,
    y: Tensor,
    after: Tensor,
    ramp_after: Tensor,
) -> None:
    """Run maxima, ballistics, mean and product in one pass."""
    if y.numel() == 0:
        pass_on(state, after)
        pass_on(ramp, ramp_after)
        return
    *leading, time = y.shape
    groups, delay = _groups(leading, after.shape), past.shape[-1]
    own = broadcast(x.shape[:-1], past.shape[:-1])
    if peaks is None and (list(own) != leading or linked(x.expand(*own, time), link).shape[:-1] != after.shape):
        peaks = torch.cat([past.expand(*own, delay), x.expand(*own, time)], dim=-1)
    if groups is None:
        _compose("limiter_forward", (x, past, peaks, settings, state, ramp, link), (y, after, ramp_after))
        return
    signal = signal_rows(x, leading)
    heard: tuple[int, ...] = OWN
    window = delay + 1
    if peaks is not None:
        window = peaks.shape[-1] - time + 1
        peaks, *strides = signal_rows(peaks if link is None else peaks_of(peaks, link), after.shape)
        heard = (peaks.data_ptr(), *strides)
    rows = coefficient_rows(settings, 1, after.shape)
    past, state, ramp = packed(past.expand(*leading, delay)), packed(state), packed(ramp)
    pack, run = native.call["limiter_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], past.data_ptr(), delay,
        *heard, y.data_ptr(), time, *groups, time,
        window, ramp.shape[-1], rows.tensor.data_ptr(), *rows[1:],
        state.data_ptr(), after.data_ptr(), ramp.data_ptr(), ramp_after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("limiter_forward", status, "settings", settings)


def sliding_max(x: Tensor, window: int, y: Tensor) -> None:
    """Run the maxima."""
    if y.numel() == 0:
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    pack, run = native.call["sliding_max"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride,
        y.data_ptr(), y.shape[-1], math.prod(x.shape[:-1]), y.shape[-1], window, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "sliding_max")


def _check(name: str, status: int, given: str, values: Tensor) -> None:
    if status:
        check_finite(given, values)
        raise_for(status, name)


def _groups(leading: Sequence[int], shared: Sequence[int]) -> tuple[int, int, int] | None:
    """Return how many gains there are, how many channels share each, and how far apart those lie.

    None where they lie along several dimensions with another one between.
    """
    own = (*(1 for _ in range(len(leading) - len(shared))), *shared)
    differing = [i for i, size in enumerate(leading) if own[i] != size]
    if not differing:
        return math.prod(leading), 1, 1
    first, end = differing[0], differing[-1] + 1
    if any(size != 1 for size in own[first:end]):
        return None
    return math.prod(own), math.prod(leading[first:end]), math.prod(leading[end:])


def _compose(name: str, arguments: Sequence[Any], results: Sequence[Tensor]) -> None:
    from torchfx._ops import operators

    for result, values in zip(results, getattr(composite, name)(operators, *arguments), strict=True):
        result.copy_(values)
