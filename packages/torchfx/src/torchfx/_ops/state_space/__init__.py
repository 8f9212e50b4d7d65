"""`torchfx_ext::state_space_forward`: linear systems of few states that may change from sample to sample.

`torchfx_ext::saturated_forward` is the same in a loop with a saturating amplifier.
"""
