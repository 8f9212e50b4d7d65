"""A static gain."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Hashable
from typing import Literal, get_args

from torch import Tensor

from torchfx.checks import finite_number
from torchfx.errors import ArgumentError
from torchfx.lti import LTI
from torchfx.processor import Processor

__all__ = ["Gain"]

GainType = Literal["amplitude", "db", "power"]


class Gain(Processor):
    """Multiply a signal by a constant.

    Args:
        gain: the factor; a text with its unit, such as "-3dB", is read as that.
        gain_type: what the number is: "amplitude" (a factor), "db" (20 log10 of it) or "power" (its square, >= 0).
        clamp: limit the result to [-1, 1].

    Raises:
        ArgumentError: a gain that is not finite or not readable, a negative power, an unknown gain_type.

    Examples:
        >>> import torch
        >>> Gain(0.5)(torch.tensor([1.0, -2.0]))
        tensor([ 0.5000, -1.0000])
        >>> round(Gain("-20 dB").factor, 12)
        0.1
    """

    def __init__(self, gain: float | str, gain_type: GainType = "amplitude", clamp: bool = False) -> None:
        """Check and keep the parameters."""
        super().__init__()
        self.gain, self.gain_type = _parse(gain, gain_type)
        self.clamp = bool(clamp)
        if self.gain_type == "db" and self.gain / 20 > sys.float_info.max_10_exp:
            raise ArgumentError(f"gain must stay below {20 * sys.float_info.max_10_exp} dB, got {self.gain:g} dB")

    @property
    def factor(self) -> float:
        """What samples are multiplied by."""
        if self.gain_type == "db":
            return math.pow(10, self.gain / 20)
        return math.sqrt(self.gain) if self.gain_type == "power" else self.gain

    def lti(self, rate: float | None) -> LTI | None:
        """Return the factor, unless clamping makes the effect nonlinear."""
        return None if self.clamp else LTI(gain=self.factor)

    def lti_key(self) -> Hashable:
        """Return what the factor depends on."""
        return (self.gain, self.gain_type, self.clamp)

    def forward(self, x: Tensor) -> Tensor:
        """Scale a signal of any shape."""
        y = x * self.factor
        return y.clamp(-1.0, 1.0) if self.clamp else y

    def extra_repr(self) -> str:
        """Return the parameters as text."""
        unit = {"amplitude": "", "db": " dB", "power": " (power)"}[self.gain_type]
        return f"{self.gain:g}{unit}" + (", clamp=True" if self.clamp else "")


def _parse(gain: float | str, gain_type: GainType) -> tuple[float, GainType]:
    if isinstance(gain, str):
        match = re.fullmatch(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(db)?\s*", gain, re.IGNORECASE)
        if match is None:
            raise ArgumentError(f"gain must be a number or a text such as '-3dB', got {gain!r}")
        gain_type = "db" if match[2] else gain_type
        gain = float(match[1])
    if gain_type not in get_args(GainType):
        raise ArgumentError(f"gain_type must be one of {', '.join(get_args(GainType))}, got {gain_type!r}")
    value = finite_number("gain", gain)
    if gain_type == "power" and value < 0:
        raise ArgumentError(f"gain must be >= 0 when it is a power, got {value:g}")
    return value, gain_type
