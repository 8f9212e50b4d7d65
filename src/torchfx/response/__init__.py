"""Looking at linear time-invariant plans: responses, delays, poles and zeros, in numbers, words and pictures."""

from torchfx.response.characteristics import Characteristics, characteristics, decibels, describe
from torchfx.response.picture import as_png, as_text, plot
from torchfx.response.systems import group_delay, impulse_response, poles, response, step_response, zeros

__all__ = [
    "Characteristics",
    "as_png",
    "as_text",
    "characteristics",
    "decibels",
    "describe",
    "group_delay",
    "impulse_response",
    "plot",
    "poles",
    "response",
    "step_response",
    "zeros",
]
