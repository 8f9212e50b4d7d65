"""`torchfx_ext::delay_network_forward`: delay lines that feed each other, for delays and reverberators."""
