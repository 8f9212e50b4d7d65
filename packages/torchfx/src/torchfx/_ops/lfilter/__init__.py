"""`torchfx_ext::lfilter_forward` and `lfilter_zero_phase`: a transfer function in the transposed direct form."""
