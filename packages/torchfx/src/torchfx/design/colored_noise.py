"""Filters that turn white noise into coloured noise, and the states in which they start."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from torchfx.design.operator import design_operator

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["COLORS", "color_sections", "color_start"]

COLORS = {"white": 0, "pink": 5, "brown": 3}
"""The colours, and how many sections make each of white noise."""

CORNER = 1e-4
"""Part of the sample rate below which, inaudibly, coloured noise is flat."""

RATIO, POLES = 4, 8
"""Ratio of neighbouring poles of pink noise, which leaves a ripple of 0.04 dB, and how many poles pass fs/2."""

TOP = (1.0, 0.9365852, 0.15188584), (1.0, 0.84683598, 0.09609664)
"""The correction with which 1 - 1/z rises like the frequency up to fs/2, its root: sqrt(sin(w/2) / (w/2)), fitted to
0.06 dB."""


def color_sections(color: str) -> Tensor:
    """Design the filter that makes noise of a colour from white noise of power 1; its power is 1 too.

    Brown noise is summed white noise, 1 / (1 - 1/z). Pink noise takes the root of that: poles and zeros in turn, at
    frequencies of a constant ratio (M. S. Keshner, 1/f Noise, Proc. IEEE 70 (3), 1982). Both are flat below fs / 10000,
    and keep to their slope within 0.3 dB from fs / 2500 on, within 0.15 dB from fs / 1000 to fs / 2.

    Returns:
        float64, (`COLORS[color]`, 6). Shared: don't write to it.
    """
    return _sections(color)


def color_start(color: str) -> Tensor:
    """Return what turns independent normal numbers of variance 1 into a state as the filter has while it runs.

    Returns:
        float64, (n, n) for n = 2 `COLORS[color]` numbers, to be multiplied by from the left; the state in SciPy's
        order, that of the first section first. Shared: don't write to it.
    """
    return _start(color)


@design_operator("color_sections(str color) -> Tensor", shape=lambda color: (COLORS[color], 6))
def _sections(color: str) -> Coefficients:
    return _designed(color)[0]


@design_operator("color_start(str color) -> Tensor", shape=lambda color: (2 * COLORS[color],) * 2)
def _start(color: str) -> Coefficients:
    return _designed(color)[1]


@lru_cache
def _designed(color: str) -> tuple[Coefficients, Coefficients]:
    if color == "white":
        return np.zeros((0, 6)), np.zeros((0, 0))
    from scipy.linalg import solve_discrete_lyapunov
    from scipy.signal import sosfilt

    poles = np.exp(-2 * np.pi * CORNER * RATIO ** np.arange(POLES))
    zeros = np.exp(-2 * np.pi * CORNER * RATIO ** (np.arange(POLES) + 0.5))
    top = np.concatenate(TOP)
    if color == "pink":
        pairs = zip(zeros.reshape(-1, 2), poles.reshape(-1, 2), strict=True)
        sos = np.array([np.concatenate([np.poly(zero), np.poly(pole)]) for zero, pole in pairs] + [top])
    else:
        sos = np.array([[1, 0, 0, 1, -poles[0], 0], top, top])
    # The state after one sample, s' = A s + b x, and its covariance while the filter runs: P = A P A^T + b b^T.
    n = 2 * len(sos)
    each = np.eye(n + 1, n).reshape(n + 1, -1, 2).swapaxes(0, 1)
    y, after = sosfilt(sos, np.eye(n + 1)[:, n:], zi=each)
    a, b = np.split(after.swapaxes(0, 1).reshape(n + 1, n).T, [n], axis=1)
    covariance = solve_discrete_lyapunov(a, b @ b.T)
    power = y[:n, 0] @ covariance @ y[:n, 0] + y[n, 0] ** 2
    sos[0, :3] /= np.sqrt(power)
    values, vectors = np.linalg.eigh(covariance / power)
    return sos, vectors * np.sqrt(values.clip(0))
