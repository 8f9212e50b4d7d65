"""The low-pass of torchaudio's `resample`, as the phases that the resampling operator takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from torchfx.design.operator import design_operator

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["sinc_reach", "sinc_taps"]


def sinc_reach(up: int, down: int, zeros: int, rolloff: float) -> int:
    """Return how far the low-pass of `sinc_taps` reaches to each side, as `resampling_reach` does."""
    return math.ceil(zeros * max(up, down) / rolloff)


@design_operator(
    "sinc_taps(int up, int down, int zeros, float rolloff, float? beta) -> Tensor",
    shape=lambda up, down, zeros, rolloff, beta: (up, 2 * sinc_reach(up, down, zeros, rolloff) // up + 1),
)
@lru_cache(maxsize=16)
def sinc_taps(up: int, down: int, zeros: int, rolloff: float, beta: float | None) -> Coefficients:
    """Design the low-pass of torchaudio's `resample`, in the layout of `resampling_taps`.

    Args:
        up, down: the ratio of the rates in lowest terms.
        zeros: of the sinc within the window, on each side.
        rolloff: the cutoff as a part of half the lower rate.
        beta: of a Kaiser window; None takes a Hann window.
    """
    from scipy import special

    reach = sinc_reach(up, down, zeros, rolloff)
    lower = min(up, down) * rolloff
    offsets = np.arange(-reach, 2 * reach // up * up + up - reach) * (lower / (up * down))
    offsets = np.clip(offsets, -zeros, zeros)
    if beta is None:
        window = np.cos(offsets * (math.pi / zeros / 2)) ** 2
    else:
        window = special.i0(beta * np.sqrt(1 - (offsets / zeros) ** 2)) / special.i0(beta)
    taps = np.sinc(offsets) * window * (lower / down)
    return np.ascontiguousarray(taps.reshape(-1, up).T)
