"""Filters as matrices that step [s'; y] = M [s; x]: what stays well-behaved while parameters change.

The states are those of analogue integrators. What they hold means the same whatever the cutoff is, so parameters may
change at every sample without the jumps of direct forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.design.biquad import BTYPE, CUTOFF, GAIN_DB, PROTOTYPES, BiquadType, Q, checked, prewarped, stacked
from torchfx.parameters import Value

__all__ = ["LADDER_MODES", "ladder", "state_variable"]


LADDER_MODES = {
    "LPF12": ((0, 0, 1, 0, 0), ((0, 1, 1), (0, 1, 1))),
    "HPF12": ((1, -2, 1, 0, 0), ((1, 0, 0), (1, 2, 1))),
    "BPF12": ((0, 0, 1, -1, 0), ((0, 1, 0), (0, 1, 1))),
    "LPF24": ((0, 0, 0, 0, 1), ((0, 0, 1), (0, 0, 1))),
    "HPF24": ((1, -4, 6, -4, 1), ((1, 0, 0), (1, 0, 0))),
    "BPF24": ((0, 0, 1, -2, 1), ((0, 1, 0), (0, 1, 0))),
}
"""The output of a ladder: the weights of its input and of each stage's output; and that sum times
(s + 1)^4, s in units of the cutoff, as two factors, coefficients of s^2, s and 1. Each stage divides by s + 1.

Source: V. Zavalishin, The Art of VA Filter Design, 2012, chapter 5 (modes of the ladder).
"""


def state_variable(cutoff: Value, q: Value, gain_db: Value, fs: float, btype: BiquadType = "lowpass") -> Tensor:
    """Design one of the cookbook's filters as a state-variable filter with trapezoidal integrators.

    The transfer function is that of `biquad` with the same arguments.

    Source: A. Simper, Solving the continuous SVF equations using trapezoidal integration and equivalent currents, 2013.

    Args:
        cutoff, q, gain_db, fs, btype: as in `biquad`.

    Returns:
        float64, (..., 3, 3), for `torchfx_ext::state_space_forward`. Tensors broadcast with each other.
    """
    rate = sample_rate(fs)
    f = checked(CUTOFF, cutoff, rate)
    root, damping = 10 ** (checked(GAIN_DB, gain_db, rate) / 80), 1 / checked(Q, q, rate)
    (b2, b1, b0), (a2, a1, a0) = PROTOTYPES[BTYPE.check(btype, rate)](damping, root)
    # With s in units of the poles' own frequency: (high s^2 + band s + low) / (s^2 + k s + 1).
    middle: Any = (a2 * a0) ** 0.5
    g, k = prewarped(f, rate) * (a0 / a2) ** 0.5, a1 / middle
    high, band, low = b2 / a2, b1 / middle, b0 / a0
    c1 = 1 / (1 + g * (g + k))
    c2 = g * c1
    c3 = g * c2
    # v1 = c1 s1 + c2 (x - s2) and v2 = s2 + c2 s1 + c3 (x - s2); the states move on to 2 v - s.
    m1, m2 = band - k * high, low - high
    return _matrix(
        [
            [2 * c1 - 1, -2 * c2, 2 * c2],
            [2 * c2, 1 - 2 * c3, 2 * c3],
            [m1 * c1 + m2 * c2, m2 * (1 - c3) - m1 * c2, high + m1 * c2 + m2 * c3],
        ]
    )


def ladder(cutoff: Value, fs: float, mode: str = "LPF24") -> Tensor:
    """Design four one-pole low-passes in a row with trapezoidal integrators, a ladder filter without its feedback.

    Source: V. Zavalishin, The Art of VA Filter Design, 2012, chapters 3 and 5.

    Args:
        cutoff: -3 dB frequency of each, Hz, in (0, fs/2).
        fs: sample rate, Hz.
        mode: one of `LADDER_MODES`: the sum of stages that is put out. "LPF24" is the last one, which is fed back.

    Returns:
        float64, (..., 5, 5), for `torchfx_ext::saturated_forward`.
    """
    rate = sample_rate(fs)
    g = prewarped(checked(CUTOFF, cutoff, rate), rate)
    share = g / (1 + g)
    # Each signal as its share of the four states and of the input; a stage adds to its state twice share (in - state).
    signal: list[Any] = [0.0, 0.0, 0.0, 0.0, 1.0]
    rows, stages = [], [signal]
    for stage in range(4):
        state = [float(i == stage) for i in range(5)]
        change = [share * (a - b) for a, b in zip(signal, state, strict=True)]
        rows.append([s + 2 * v for s, v in zip(state, change, strict=True)])
        signal = [s + v for s, v in zip(state, change, strict=True)]
        stages.append(signal)
    weights, _ = LADDER_MODES[mode]
    heard = [sum(w * v for w, v in zip(weights, shares, strict=True)) for shares in zip(*stages, strict=True)]
    return _matrix([*rows, heard])


def _matrix(rows: Sequence[Sequence[Value]]) -> Tensor:
    values = stacked([value for row in rows for value in row])
    return values.reshape(*values.shape[:-1], len(rows), len(rows))
