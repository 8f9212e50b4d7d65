"""Rounding to fewer bits, with dither and noise shaping."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
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


class Dither(Processor):
    """Round to a number of bits behind noise that makes the error independent of the signal.

    Noise of triangular density (`TPDF`), the sum of two uniform ones of one step each, keeps mean and power of the
    error the same whatever the signal is. That of rectangular density (`RPDF`), one step wide, does so for the mean
    alone. `highpass` is triangular too and lies at high frequencies, where it is heard less: the difference of a
    uniform noise's neighbouring samples. The noise depends on `seed`, channel and sample alone: calls repeat it, and so
    does each example of a batch. The gradient is 0, as that of every step function is.

    With `noise_shaping` the errors come back through a filter: there is less of them where the ear hears best, 17 to 28
    dB at 3 to 4 kHz, and more elsewhere, in all 12 ("lipshitz") or 18 dB ("wannamaker"). The filters are made for 44.1
    kHz; at other rates their curves move with the rate.

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

    bits: int = count(default=16, low=1, high=32, draws=(4, 8), doc="how many bits a sample has, its sign among them")
    shape: str = choice(("TPDF", "RPDF", "highpass"), default="TPDF", doc="the noise")
    seed: int = count(default=0, low=0, high=2**31 - 1, draws=(0, 9), doc="of the noise")
    noise_shaping: str = choice(tuple(SHAPINGS), default="none", doc="the filter for the errors")

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return how many samples there were, and the last errors."""
        errors = torch.zeros(*shape, len(SHAPINGS[self.noise_shaping]), dtype=torch.float64, device=device)
        return torch.zeros(1, dtype=torch.int64, device=device), errors

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Add noise and round."""
        steps = 2.0 ** (self.bits - 1)
        at = state[0] + torch.arange(x.shape[-1], device=x.device)
        if x.dim() > 1:
            at = at + torch.arange(x.shape[-2], device=x.device)[:, None] * CHANNEL
        noise = uniform(at, 2 * self.seed) - 0.5
        if self.shape == "TPDF":
            noise = noise + uniform(at, 2 * self.seed + 1) - 0.5
        elif self.shape == "highpass":
            noise = noise - (uniform(at - 1, 2 * self.seed) - 0.5)
        wanted, errors = x.double() * steps, state[1]
        taps = SHAPINGS[self.noise_shaping]
        if taps:
            found, errors = _ops.error_feedback_forward(wanted, noise, settings_on(x.device, taps), errors)
        else:
            found = torch.round(wanted + noise)
        return (found / steps).to(x.dtype), (state[0] + x.shape[-1], errors)


CHANNEL = 2**40
"""Between the numbers of two channels: no signal is as long."""


def uniform(at: Tensor, seed: int) -> Tensor:
    """Return a random number in [0, 1) for each whole number (int64), float64, the same for the same.

    Source: SplitMix64; G. L. Steele, D. Lea, C. H. Flood, Fast Splittable Pseudorandom Number Generators, 2014.
    """
    z = (at + (seed << 20)) * _signed(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ _shifted(z, shift)) * _signed(factor)
    return _shifted(z ^ _shifted(z, 31), 11).double() * 2.0**-53


def _shifted(z: Tensor, by: int) -> Tensor:
    """Shift right as if there were no sign."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
