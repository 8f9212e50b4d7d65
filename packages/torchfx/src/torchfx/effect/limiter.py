"""Limiter."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.design.resampling import resampling_reach, resampling_taps
from torchfx.effect.dynamics import LINKED, channel_peak, levels_shape, smoothing
from torchfx.loudness import OVERSAMPLING
from torchfx.parameters import Value, decibels, flag, milliseconds, sample_rate
from torchfx.plan import Handover, State, kept
from torchfx.tensors import columns, latest, settings_on

__all__ = ["Limiter"]

QUALITY = "HQ"

SPREAD = 16
"""Samples to each side of a peak between samples for which the gain is held: most of what is added up there."""


class Limiter(Processor):
    """Brick-wall limiter: no output sample exceeds the threshold.

    The gain brings each peak down to the threshold. It begins to fall linearly `lookahead_ms` before the peak, reaches
    its minimum at the peak, and recovers with the time constant `release_ms`. Streams lag by the look-ahead; whole
    signals stay aligned.

    `true_peak` also detects peaks between samples, at 4 times the rate: the output's `torchfx.loudness.true_peak`
    exceeds the threshold by at most 0.1 dB. This adds about 2 ms of latency at 48 kHz.

    Examples:
        >>> import torch
        >>> limiter = Limiter(-6.020599913279624, lookahead_ms=0.0, release_ms=0.0, fs=48_000)
        >>> limiter(torch.tensor([0.25, -1.0, 0.25]))
        tensor([ 0.2500, -0.5000,  0.2500])
        >>> Limiter(lookahead_ms=5.0).latency_samples(48_000)
        240
    """

    threshold_db: Value = decibels(
        default=-1.0, low=-200.0, high=200.0, draws=(-30.0, -3.0), doc="level of the largest peak"
    )
    release_ms: Value = milliseconds(default=100.0, draws=(10.0, 500.0), doc="time constant of a rising gain")
    lookahead_ms: float = milliseconds(
        default=5.0,
        high=1000.0,
        draws=(0.05, 0.5),
        doc="time before a peak in which the gain falls",
        learnable=False,
    )
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    true_peak: bool = flag(default=False, doc="limits peaks between samples, too (true peak)")
    fs: float | None = sample_rate(default=None)

    def _ahead(self, rate: float) -> int:
        """Return the look-ahead in samples, to the nearest."""
        return round(self.lookahead_ms * rate / 1000)

    @property
    def _wait(self) -> int:
        """How long the low-pass waits for what lies between two samples."""
        return -(-resampling_reach(OVERSAMPLING, 1, QUALITY) // OVERSAMPLING) if self.true_peak else 0

    @property
    def _spread(self) -> int:
        return SPREAD if self.true_peak else 0

    def latency_samples(self, rate: Any) -> int:
        """Return the look-ahead plus the latency of the true-peak detector."""
        return self._ahead(rate) + self._wait + self._spread

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: silence for the delayed signal, the detector's input and past peaks, and no gain
        reduction.
        """
        ahead, linked = self._ahead(rate), levels_shape(shape, self.link)
        leading = self.broadcast_shape(linked)
        return (
            torch.zeros(*shape, self.latency_samples(rate), dtype=dtype, device=device),
            torch.zeros(*shape, 2 * self._wait, dtype=dtype, device=device),
            torch.zeros(*linked, ahead + 2 * self._spread if self.true_peak else 0, dtype=dtype, device=device),
            torch.zeros(leading, dtype=torch.float64, device=device),
            torch.zeros(*leading, ahead, dtype=torch.float64, device=device),
        )

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Limit the next block."""
        past, heard, past_peaks, reduction, ramp = state
        time, peaks = x.shape[-1], None
        if self.true_peak:
            heard = torch.cat([heard, x], dim=-1)
            found = self._peaks(heard, time)
            peaks = torch.cat([past_peaks, channel_peak(found) if self.link else found], dim=-1)
            heard, past_peaks = heard[..., time:].clone(), peaks[..., time:].clone()
        settings, link = self._settings(rate, x.device), LINKED if self.link else None
        y, reduction, ramp = _ops.limiter_forward(x, past, peaks, settings, reduction, ramp, link)
        return y, (latest(past, x), heard, past_peaks, reduction, ramp)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the peak detector and the limiter, if nothing in it is learned."""
        settings = self._settings(rate, torch.device("cpu"))
        past, heard, past_peaks, reduction, ramp = state
        if settings.requires_grad or reduction.shape != levels_shape(program.shape, self.link):
            return None
        peaks: int | None = None
        if self.true_peak:
            taps, middle = resampling_taps(OVERSAMPLING, 1, QUALITY), resampling_reach(OVERSAMPLING, 1, QUALITY)
            peaks = program.maximum(program.true_peak(source, taps, middle, heard), past_peaks)
        found: int = program.limiter(source, settings, past, reduction, ramp, peaks)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the whole state; the new settings fade in after the look-ahead.

        Until then the gain does not follow the new threshold, and samples above it are clipped.
        """
        return kept(old, new, rate, self.latency_samples(rate))

    def _settings(self, rate: Any, device: torch.device) -> Tensor:
        """Return threshold and the coefficient of the release."""
        threshold = 10 ** (settings_on(self.threshold_db, device) / 20)
        return columns((threshold, smoothing(self.release_ms, rate)), device)

    def _peaks(self, heard: Tensor, time: int) -> Tensor:
        """Return the peak at each of `time` samples, between it and the next one too; `_wait` samples late."""
        wait, n = self._wait, heard.shape[-1]
        taps = resampling_taps(OVERSAMPLING, 1, QUALITY).to(heard.device)
        origin = resampling_reach(OVERSAMPLING, 1, QUALITY) + (n - time - wait) * OVERSAMPLING
        between = _ops.resample_forward(heard, taps, 1, origin, time * OVERSAMPLING)
        between = between.unflatten(-1, (time, OVERSAMPLING)).abs().amax(-1)
        return torch.maximum(between, heard[..., n - time - wait : n - wait].abs())
