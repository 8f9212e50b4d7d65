"""`torchfx_ext::sos_forward`: a cascade of second-order sections, and its backward pass."""
