"""Comb filters: a notch or a peak at every multiple of one frequency."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops
from torchfx.checks import number_text
from torchfx.core.processor import Processor
from torchfx.design.biquad import checked, section
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, frequency, number, sample_rate
from torchfx.plan import Handover, State
from torchfx.plan.handover import Move, memory_samples
from torchfx.tensors import in_rows, joined, settings_on

__all__ = ["Comb"]

LONGEST_PERIOD = 1_000_000
"""The longest period in samples: 20 s at 48 kHz."""


class Comb(Processor):
    """Remove or keep a frequency and all its harmonics, including 0 Hz.

        y[n] = b (x[n] -+ x[n-N]) + a y[n-N],   N = fs / cutoff rounded to a whole number of samples

    Equals `scipy.signal.iircomb(cutoff, q, "notch", fs)` and `iircomb(cutoff, q, "peak", fs, pass_zero=True)`, which
    reject frequencies that do not divide the sample rate; here the nearest frequency that does is used.

    Examples:
        >>> import math, torch
        >>> n = torch.arange(48_000, dtype=torch.float64)
        >>> hum = torch.sin(2 * math.pi * 50 / 48_000 * n) + 0.3 * torch.sin(2 * math.pi * 150 / 48_000 * n)
        >>> bool(Comb(50, q=10, fs=48_000)(hum)[-4800:].abs().max() < 1e-5)
        True
    """

    cutoff: float = frequency(doc="the fundamental", learnable=False)
    q: Value = number(
        default=30.0, low=1.0, open_low=True, high=1e6, draws=(1.5, 50.0), doc="cutoff / bandwidth of a notch or peak"
    )
    ftype: Literal["notch", "peak"] = choice(("notch", "peak"), default="notch")
    fs: float | None = sample_rate(default=None)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: zeros for the last N samples."""
        return (torch.zeros(*self.output_shape(shape), self._period(rate), dtype=torch.float64, device=device),)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Filter the next block.

        The N interleaved signals, each made of every N-th sample, are independent, and a first-order filter processes
        each. All complete periods are one operator call; the remaining samples are computed directly.
        """
        (line,) = state
        period, time = line.shape[-1], x.shape[-1]
        sos = settings_on(self._section(rate), x.device)
        rows = sos.unsqueeze(-3) if sos.dim() > 2 else sos
        b0, b1, a1 = (sos[..., 0, i, None] for i in (0, 1, 4))
        x = x.expand(*line.shape[:-1], time)
        before = torch.stack([line, torch.zeros_like(line)], dim=-1)[None]
        if not isinstance(time, int):  # `torch.export`'s variable: the last period is filled up with silence
            y = _ops.parallel_iir_forward(in_rows(pad(x.double(), (0, period - 1)), period).mT, rows, before)[0]
            y = joined(y.mT, time)
            later = torch.cat([line, b1 * x[..., -period:].double() - a1 * y[..., -period:]], dim=-1)
            return y.to(x.dtype), (later[..., -period:],)
        whole = time // period * period
        parts = []
        if whole:
            y, after = _ops.parallel_iir_forward(in_rows(x[..., :whole], period).mT, rows, before)
            line = after[0, ..., 0]
            parts.append(y.mT.flatten(-2))
        if whole < time or not whole:
            rest = x[..., whole:].double()
            y = b0 * rest + line[..., : rest.shape[-1]]
            line = torch.cat([line[..., rest.shape[-1] :], b1 * rest - a1 * y], dim=-1)
            parts.append(y.to(x.dtype))
        return torch.cat(parts, dim=-1), (line,)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append a delay line whose input is b1 x - a1 y, if nothing is learned."""
        sos = self._section(rate)
        if sos.requires_grad or state[0].shape[:-1] != program.shape:
            return None
        b0, b1, a1 = sos[..., 0, 0], sos[..., 0, 1], sos[..., 0, 4]
        rows = [torch.stack([-a1, b1 - a1 * b0], dim=-1), torch.stack([torch.ones_like(b0), b0], dim=-1)]
        found: int = program.delay_network(source, (self._period(rate),), torch.stack(rows, dim=-2), None, *state)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the content of the line, or the state at rest if the period differs."""
        same = before._period(rate) == self._period(rate) and before.ftype == self.ftype
        period = self._period(rate)
        waiting = period * memory_samples(self._section(rate), rate / period)
        return Handover((Move(0) if same and old[0].shape == new[0].shape else None,), waiting)

    def check_parameters(self) -> None:
        """Raise if the period is too long."""
        if self.fs is not None:
            self._period(self.fs)

    def _period(self, rate: float) -> int:
        period = rate / self.cutoff
        if period > LONGEST_PERIOD:
            raise ArgumentError(
                f"cutoff must be at least fs / {LONGEST_PERIOD} = {number_text(rate / LONGEST_PERIOD)} Hz, "
                f"got {number_text(self.cutoff)}"
            )
        return round(period)

    def _section(self, rate: float) -> Tensor:
        """Return the filter of each interleaved signal (S. J. Orfanidis, Introduction to Signal Processing, 1996)."""
        angle = math.pi / 2 / checked(self.declarations["q"], self.q, rate)
        beta = angle.tan() if isinstance(angle, Tensor) else math.tan(angle)
        pole = (1 - beta) / (1 + beta)
        if self.ftype == "notch":
            return section((1 / (1 + beta), -1 / (1 + beta), 0.0, 1.0, -pole, 0.0))
        return section((beta / (1 + beta), beta / (1 + beta), 0.0, 1.0, -pole, 0.0))
