"""Physical parameters to float64 coefficients: pure functions, no modules, no state."""

from torchfx.design.biquad import BiquadType, biquad, parametric_eq
from torchfx.design.fir_bands import (
    frequency_sampled_taps,
    hilbert_taps,
    least_squares_taps,
    remez_taps,
    savitzky_golay_taps,
)
from torchfx.design.first_order import dc_blocker, one_pole
from torchfx.design.firwin import fir_taps, kaiser_taps, minimum_phase_taps
from torchfx.design.iir import bessel, butterworth, chebyshev1, chebyshev2, elliptic
from torchfx.design.linkwitz_riley import crossover, linkwitz_riley
from torchfx.design.weighting import riaa, weighting

__all__ = [
    "BiquadType",
    "bessel",
    "biquad",
    "butterworth",
    "chebyshev1",
    "chebyshev2",
    "crossover",
    "dc_blocker",
    "elliptic",
    "fir_taps",
    "frequency_sampled_taps",
    "hilbert_taps",
    "kaiser_taps",
    "least_squares_taps",
    "linkwitz_riley",
    "minimum_phase_taps",
    "one_pole",
    "parametric_eq",
    "remez_taps",
    "riaa",
    "savitzky_golay_taps",
    "weighting",
]
