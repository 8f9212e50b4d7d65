"""State-variable filter; its parameters may change at every sample."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx import _ops
from torchfx.design.biquad import BIQUADS, BiquadType, biquad
from torchfx.design.state_space import state_variable
from torchfx.errors import ArgumentError
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import BUTTERWORTH_Q, Value, choice, frequency, gain_decibels, quality, sample_rate
from torchfx.rate import ambient_rate
from torchfx.tensors import check_signal

__all__ = ["StateVariable"]

GAINED = ("peaking", "lowshelf", "highshelf")
"""Modes with a gain parameter."""


class StateVariable(RecursiveFilter):
    """Second-order state-variable filter with trapezoidal integrators, suited to modulation.

    With constant parameters it equals the Audio EQ Cookbook's filter of the same mode, and chains fuse it. `modulated`
    runs it with parameters that vary over time.

    Source: A. Simper, Solving the continuous SVF equations using trapezoidal integration and equivalent currents, 2013.

    Examples:
        >>> import torch
        >>> settled = StateVariable(1000, q=2.0, fs=48_000)(torch.ones(1, 48_000))
        >>> round(float(settled[0, -1]), 6)  # 0 Hz passes unchanged
        1.0

        A sweep from 200 Hz to 8 kHz within a second:

        >>> sweep = torch.logspace(2.301, 3.903, 48_000, dtype=torch.float64)
        >>> y, state = StateVariable(1000, q=4.0, fs=48_000).modulated(torch.randn(2, 48_000), cutoff=sweep)
        >>> y.shape, state.shape
        (torch.Size([2, 48000]), torch.Size([2, 2]))
    """

    cutoff: Value = frequency(doc="corner or centre frequency, or a shelf's midpoint")
    q: Value = quality(default=BUTTERWORTH_Q)
    mode: BiquadType = choice(BIQUADS, default="lowpass", doc="what the filter is")
    gain_db: Value = gain_decibels(default=0.0, doc="gain of a peak or shelf")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if a gain is given for a mode without a gain."""
        if self.mode not in GAINED and (isinstance(self.gain_db, Tensor) or self.gain_db != 0):
            raise self._gainless(self.declarations["gain_db"].show(self.gain_db))

    def _gainless(self, got: str) -> ArgumentError:
        return ArgumentError(f"gain_db must be 0 where mode is {self.mode}: {', '.join(GAINED)} have a gain, got {got}")

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return biquad(self.cutoff, self.q, self.gain_db, rate, self.mode)

    def modulated(
        self,
        x: Tensor,
        cutoff: Value | None = None,
        q: Value | None = None,
        gain_db: Value | None = None,
        state: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run the filter with parameters that vary over time.

        Args:
            x: float32 or float64, (..., time).
            cutoff, q, gain_db: numbers, or tensors (..., time), in the units and ranges of the filter's parameters;
                leading dimensions broadcast with the signal's. If the last dimension divides `time`, it holds one value
                per block; if it is 1, one value per example. Omitted parameters keep their value.
            state: float64, (..., 2), of the two integrators, returned by the call for the previous block; None starts
                from rest.

        Returns:
            The output, shaped like x, and the state for the next block.

        Raises:
            ArgumentError: a parameter out of range, a number of values that does not divide the number of samples, or a
                gain in a mode without a gain.

        Examples:
            >>> import torch
            >>> wah = StateVariable(500, q=5.0, mode="bandpass", fs=48_000)
            >>> blocks = torch.tensor([500.0, 700.0, 900.0])  # a value for each 100 samples
            >>> y, _ = wah.modulated(torch.randn(300), cutoff=blocks)
        """
        if gain_db is not None and self.mode not in GAINED:
            raise self._gainless("a modulation of it")
        x = check_signal(x, self._half)
        rate = self.rate_for(ambient_rate())
        assert rate is not None
        given = ((cutoff, self.cutoff), (q, self.q), (gain_db, self.gain_db))
        f, d, g = (_along_time(own) if value is None else value for value, own in given)
        system = state_variable(f, d, g, rate, self.mode).to(x.device)
        return _ops.state_space_forward(x, system if system.dim() > 2 else system[None], state)


def _along_time(value: Value) -> Value:
    """Return a parameter, one value per example, as one that holds for all time."""
    return value[..., None] if isinstance(value, Tensor) else value
