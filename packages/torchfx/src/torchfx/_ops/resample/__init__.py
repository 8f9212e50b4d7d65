"""`torchfx_ext::resample_forward`: a signal at another sample rate, by the phases of a low-pass."""
