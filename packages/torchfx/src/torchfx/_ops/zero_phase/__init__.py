"""`torchfx_ext::sos_zero_phase`: a cascade forwards and then backwards, over a signal extended beyond its ends."""
