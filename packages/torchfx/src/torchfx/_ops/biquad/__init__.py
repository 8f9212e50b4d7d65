"""`torchfx_ext::biquad_forward`: a cascade of one section, given as b and a."""
