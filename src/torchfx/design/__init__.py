"""Physical parameters to float64 coefficients: pure functions, no modules, no state."""

from torchfx.design.biquad import BiquadType, biquad, parametric_eq
from torchfx.design.firwin import fir_taps
from torchfx.design.iir import butterworth, chebyshev1

__all__ = ["BiquadType", "biquad", "butterworth", "chebyshev1", "fir_taps", "parametric_eq"]
