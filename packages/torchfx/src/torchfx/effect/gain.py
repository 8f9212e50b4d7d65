"""A static gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError
from torchfx.parameters import MOST_DECIBELS, Level, Value, choice, decibels, flag, level
from torchfx.plan import LTI, State

if TYPE_CHECKING:
    from torchfx._ops.program import Program

__all__ = ["Gain"]

GainType = Literal["amplitude", "db", "power"]


class Gain(Processor):
    """Multiply a signal by a constant.

    Examples:
        >>> import torch
        >>> Gain(0.5)(torch.tensor([1.0, -2.0]))
        tensor([ 0.5000, -1.0000])
        >>> round(Gain("-20 dB").factor, 12)
        0.1
        >>> Gain(gain_db=-6, clamp=True)
        Gain(-6 dB, clamp=True)
    """

    gain: Value | str = level(default=1.0, doc='the factor; a text such as "-3dB" gives it in decibels', typical="-6dB")
    gain_type: GainType = choice(
        ("amplitude", "db", "power"), default="amplitude",
        doc="what a bare number is: a factor, 20 log10 of it, or its square",
    )  # fmt: skip
    clamp: bool = flag(default=False, doc="whether the result is limited to [-1, 1]")
    gain_db: Value | str | None = decibels(default=None, doc="the gain in decibels, instead of `gain`")

    def check_parameters(self) -> None:
        """Raise if the gain is out of range, or given twice."""
        gain: Any = self.gain
        if self.gain_db is not None:
            if isinstance(gain, Tensor) or gain != 1 or self.gain_type != "amplitude":
                shown = self.declarations["gain"].show(gain)
                raise ArgumentError(f"gain_db replaces gain and gain_type, got gain={shown} too; gain_db=None ends it")
            return
        if isinstance(gain, (Tensor, Level)):
            return
        if self.gain_type == "power" and gain < 0:
            raise ArgumentError(f"gain must be >= 0 when it is a power, got {gain:g}")
        if self.gain_type == "db" and not gain < MOST_DECIBELS:
            raise ArgumentError(f"gain must stay below {MOST_DECIBELS:g} dB, got {gain:g} dB")

    @property
    def factor(self) -> Any:
        """The linear factor: a number, or a tensor of numbers."""
        gain: Any = self.gain if self.gain_db is None else self.gain_db
        if isinstance(gain, Level):
            return float(gain)
        if isinstance(gain, Tensor):
            gain = gain.double()
        if self.gain_db is not None or self.gain_type == "db":
            return 10 ** (gain / 20)
        return gain**0.5 if self.gain_type == "power" else gain

    def lti(self, rate: Any) -> LTI | None:
        """Return the factor, unless clamping makes the effect nonlinear."""
        return None if self.clamp else LTI(gain=self.factor)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Scale and clamp."""
        factor = self.factor
        if isinstance(factor, Tensor):
            factor = factor.to(device=x.device, dtype=x.dtype)[..., None]
        return (x * factor).clamp(-1.0, 1.0), state

    def native(self, program: Program, source: int, state: State, rate: Any) -> int | None:
        """Append gain and clamp."""
        if isinstance(self.factor, Tensor):
            return None
        return program.clamp(program.gain(source, self.factor), -1.0, 1.0)

    def extra_repr(self) -> str:
        """Return the gain with its unit."""
        gain, kind = (self.gain, self.gain_type) if self.gain_db is None else (self.gain_db, "db")
        unit = {"amplitude": "", "db": " dB", "power": " (power)"}[kind]
        shown = self.declarations["gain"].show(gain) + ("" if isinstance(gain, Level) else unit)
        return shown + (", clamp=True" if self.clamp else "")
