"""`torchfx_ext::mel_forward`: bands of the power spectra of frames, and their logarithms, in one pass."""
