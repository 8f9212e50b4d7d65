"""Recursive filters whose coefficients change along the signal."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.errors import ArgumentError
from torchfx.tensors import check_signal

__all__ = ["allpole", "time_varying_sosfilt"]


def allpole(x: Tensor, a: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Run an all-pole filter: y[t] = x[t] - a[t, 0] y[t-1] - ... - a[t, order - 1] y[t-order].

    Linear prediction (LPC) synthesis is such a filter. Differentiable to any order in all arguments, native on the CPU.

    Args:
        x: float32 or float64, (..., time).
        a: float32 or float64, (..., time, order), a row of coefficients for each sample, or (..., 1, order), one for
            all. Leading dimensions broadcast with the signal's.
        past: float64, (..., order), the outputs before the first, the latest first; None starts from rest.

    Returns:
        The output like x, and the last outputs like `past`, with which the next block continues.

    Raises:
        ArgumentError: a wrong shape or device, a constant coefficient that is NaN or infinite.
        ArgumentTypeError: a wrong type.

    Examples:
        >>> y, past = allpole(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([[-0.5]]))
        >>> y
        tensor([1.0000, 0.5000, 0.2500])
        >>> allpole(torch.zeros(2), torch.tensor([[-0.5], [0.0]]), past)[0]
        tensor([0.1250, 0.0000])
    """
    return _ops.allpole_forward(check_signal(x), a, past)


def time_varying_sosfilt(sos: Tensor, x: Tensor, zi: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """Filter a signal through second-order sections whose coefficients change along it.

    Sections are of the transposed direct form II, as in SciPy's `sosfilt`: a sample is filtered by its own row of
    coefficients, with the state that the rows before it left. So the result is that of `sosfilt` called for each
    stretch of equal coefficients with the state of the stretch before. The state is float64, as are samples that pass
    between sections. Stability is not checked: sections that are stable each may not be as a sequence. For fast sweeps
    of resonant filters take `torchfx.filter.StateVariable.modulated`, whose state does not depend on the coefficients.

    Args:
        sos: float64, (..., times, sections, 6), rows b0 b1 b2 a0 a1 a2. Each serves time / times samples in a row, a
            whole number: `times` is 1, the number of blocks, or time. Leading dimensions broadcast with the signal's.
        x: float32 or float64, (..., time).
        zi: float64, (sections, ..., 2), SciPy's layout; None starts from rest.

    Returns:
        The output like x; with zi, also the state after it, like zi.

    Raises:
        ArgumentError: a wrong shape or device, a number of rows that does not divide the signal evenly.
        ArgumentTypeError: a wrong type.

    Examples:
        >>> fades = torch.tensor([[[1.0, 0, 0, 1, 0, 0]], [[0.5, 0, 0, 1, 0, 0]]], dtype=torch.float64)
        >>> time_varying_sosfilt(fades, torch.ones(4))
        tensor([1.0000, 1.0000, 0.5000, 0.5000])
    """
    x = check_signal(x)
    if sos.dim() < 3 or sos.shape[-1] != 6 or sos.shape[-2] < 1:
        raise ArgumentError(f"sos must have the shape (..., times, sections >= 1, 6), got {tuple(sos.shape)}")
    count = sos.shape[-2]
    if zi is not None and (zi.dim() < 2 or zi.shape[0] != count):
        raise ArgumentError(f"zi must have the shape ({count}, ..., 2), got {tuple(zi.shape)}")
    y, states = x.double(), []
    for k in range(count):
        b0, b1, b2, a1, a2 = (sos[..., k, [0, 1, 2, 4, 5]] / sos[..., k, 3:4]).unbind(-1)
        one, zero = torch.ones_like(b0), torch.zeros_like(b0)
        system = torch.stack([-a1, one, b1 - a1 * b0, -a2, zero, b2 - a2 * b0, one, zero, b0], dim=-1)
        y, after = _ops.state_space_forward(y, system.unflatten(-1, (3, 3)), None if zi is None else zi[k])
        states.append(after)
    y = y.to(x.dtype)
    return y if zi is None else (y, torch.stack(states))
