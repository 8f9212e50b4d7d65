"""`torchfx_ext::phase_vocoder_forward`: short spectra read at one pace and laid down at another."""
