"""Bit depth reduction with dither and noise shaping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.functional.noise import places
from torchfx.parameters import choice, count
from torchfx.plan import State
from torchfx.tensors import settings_on

__all__ = ["Dither"]

SHAPINGS = {
    "none": (),
    "lipshitz": (2.033, -2.165, 1.959, -1.590, 0.6149),
    "wannamaker": (2.412, -3.370, 3.937, -4.174, 3.353, -2.205, 1.281, -0.569, 0.0847),
}
"""Which part of the errors before is taken away from a sample: of the last one, of the one before it, and so on."""

DENSITIES = {"TPDF": "triangular", "RPDF": "rectangular", "highpass": "differences"}
"""The operator's names for the shapes."""


class Dither(Processor):
    """Add noise, then round to a number of bits, so that the error does not depend on the signal.

    `TPDF` noise (triangular density, the sum of two uniform noises of one step each) makes mean and power of the error
    independent of the signal. `RPDF` noise (rectangular density, one step wide) does so for the mean only. `highpass`
    is triangular too, with its energy at high frequencies, where it is less audible: the difference of neighbouring
    samples of uniform noise. The noise depends only on `seed`, channel and sample, so all calls and all examples of a
    batch get the same noise. The gradient is 0.

    `noise_shaping` feeds the error back through a filter. This reduces the error by 17 to 28 dB at 3 to 4 kHz, where
    hearing is most sensitive, and increases it elsewhere; the total error power rises by 12 dB ("lipshitz") or 18 dB
    ("wannamaker"). The filters are designed for 44.1 kHz; at other rates their curves scale with the rate.

    Source: S. P. Lipshitz, R. A. Wannamaker, J. Vanderkooy, Quantization and Dither, J. Audio Eng. Soc. 40 (5), 1992;
    S. P. Lipshitz, J. Vanderkooy, R. A. Wannamaker, Minimally Audible Noise Shaping, J. Audio Eng. Soc. 39 (11), 1991;
    R. A. Wannamaker, Psychoacoustically Optimal Noise Shaping, J. Audio Eng. Soc. 40 (7/8), 1992.

    Examples:
        >>> import torch
        >>> quiet = torch.full((100_000,), 0.3 / 2**15)  # below half a step: without dither it would be lost
        >>> round(float(Dither(16)(quiet).mean() * 2**15), 1)
        0.3
        >>> from torchfx.filter import LoButterworth
        >>> errors = [Dither(16, noise_shaping=shaping)(quiet) - quiet for shaping in ("none", "wannamaker")]
        >>> plain, shaped = (LoButterworth(6000, order=8, fs=44_100)(each).square().mean() for each in errors)
        >>> bool(shaped < plain / 10)  # below 6 kHz
        True
    """

    bits: int = count(default=16, low=1, high=32, draws=(4, 8), doc="bits per sample, including the sign")
    shape: str = choice(("TPDF", "RPDF", "highpass"), default="TPDF", doc="kind of noise")
    seed: int = count(default=0, low=0, high=2**31 - 1, draws=(0, 9), doc="of the noise")
    noise_shaping: str = choice(tuple(SHAPINGS), default="none", doc="noise-shaping filter")

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the sample count 0, and zeros for the last errors."""
        errors = torch.zeros(*shape, len(SHAPINGS[self.noise_shaping]), dtype=torch.float64, device=device)
        return torch.zeros(1, dtype=torch.int64, device=device), errors

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Add noise and round."""
        step, place = settings_on(2.0 ** (1 - self.bits), x.device), places(state[0], x.shape[:-1])
        key, density = self.seed << 21, DENSITIES[self.shape]
        taps, errors = SHAPINGS[self.noise_shaping], state[1]
        if taps:
            silence = torch.zeros((), dtype=torch.float64, device=x.device).expand(x.shape[-2:])
            noise = _ops.noise_forward(silence, torch.ones_like(step), place, key, density)
            wanted, shaping = x.double() / step, settings_on(taps, x.device)
            found, errors = _ops.error_feedback_forward(wanted, noise, shaping, errors)
            y = (found * step).to(x.dtype)
        else:
            y = _ops.noise_forward(x, step, place, key, density, rounded=True)
        return y, (state[0] + x.shape[-1], errors)
