"""`torchfx_ext::noise_forward` and the magnitudes that noise is measured by: random numbers by their place."""
