"""`torchfx_ext::lti_forward`: a finite impulse response, then a cascade, with float64 between the two.

What the cascade suppresses may be far larger than what it lets through, and so would be its rounding to float32.
"""
