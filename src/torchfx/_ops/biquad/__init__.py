"""`torchfx_ext::biquad_forward`: one second-order section given as b and a."""
