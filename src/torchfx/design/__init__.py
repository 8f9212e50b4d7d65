"""Physical parameters to float64 coefficients: pure functions, no modules, no state."""

from torchfx.design.firwin import fir_taps
from torchfx.design.iir import butterworth, chebyshev1

__all__ = ["butterworth", "chebyshev1", "fir_taps"]
