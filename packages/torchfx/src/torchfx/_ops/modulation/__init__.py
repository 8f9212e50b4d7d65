"""`torchfx_ext::modulated_gain_forward`, `modulated_delay_forward` and `phaser_forward`: what an oscillator swings."""
