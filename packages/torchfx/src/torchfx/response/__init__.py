"""Analysis of linear time-invariant plans: responses, delays, poles and zeros.

`torchfx.response.characteristics` describes them in words, `torchfx.response.picture` plots them.
"""

from torchfx.response.systems import group_delay, impulse_response, poles, response, step_response, zeros

__all__ = ["group_delay", "impulse_response", "poles", "response", "step_response", "zeros"]
