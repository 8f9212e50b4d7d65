"""`torchfx_ext::fir_forward`: a finite impulse response, and its backward pass."""
