"""`torchfx_ext::lti_forward`: a finite impulse response, then a cascade, in one call."""
