"""Voice activity detection: a speech probability for each 10 ms, from the band powers relative to the noise floor.

    voice_activity.probabilities(x, 16_000)        # (..., frames)
    voice_activity.intervals(x, 16_000)            # [(start, end), ...] in samples
    detector = voice_activity.Detector(16_000)     # block by block

The power of 12 bands, evenly spaced on the mel scale from 100 Hz to 6 kHz (of those below half the sample rate), is
measured in Hann windows of 25 ms. Each band's floor is the minimum of its smoothed power in the last 2.5 s; the first
0.1 s have no floor and count as silence. The score is the mean over bands of log(power / floor), with the power of the
surrounding 90 ms and each logarithm clamped to [0, 3]. A logistic function maps the score to a probability. Any sound
with a varying level counts as speech, such as music or a slamming door.

Measured on synthesised speech (`benchmark/voice_activity.py`): `docs/voice-activity.md`.

Source of the floor: R. Martin, Noise Power Spectral Density Estimation Based on Optimal Smoothing and Minimum
Statistics, IEEE Trans. Speech and Audio Processing 9 (5), 2001; here without its bias correction, which is part of the
score's threshold.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from torchfx import _ops
from torchfx import intervals as found_intervals
from torchfx.checks import finite_number, number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.functional.filtering import lfilter
from torchfx.intervals import Interval
from torchfx.tensors import check_signal, is_readable

__all__ = ["Detector", "intervals", "probabilities"]

FRAMES = 100  # a second
WIDTH_S = 0.025
BANDS, LOWEST, HIGHEST = 12, 100.0, 6000.0
SMOOTHING = 0.8  # of a band's power from frame to frame, for its floor
MEMORY = 250  # frames that a floor is the least of
SETTLING = 10  # frames at the beginning whose smoothed power hardly has more than their own noise: no floor
AROUND = 4  # frames on both sides that a frame's power is averaged with
MOST = 3.0  # of a band's logarithm
# The score of stationary noise lies below 0.5 in 95 of 100 frames, white, pink and hum alike.
THRESHOLD, STEEPNESS = 0.5, 12.0
SILENCE = 10 ** (-90 / 20)  # the noise that is added to the power of every band: that of 16-bit samples


class _State(NamedTuple):
    """The state of a detector, for each row.

    Attributes:
        samples: those that later frames need, (rows, n).
        smoothing: the filter's state, (rows, bands, 1); None before the first frame.
        memory: minus the smoothed powers of the last MEMORY - 1 frames, (rows, bands, n).
        powers: of the frames whose probability isn't known yet, and of AROUND before, (rows, bands, n).
        floors: of the frames whose probability isn't known yet, (rows, bands, n).
    """

    samples: Tensor
    smoothing: Tensor | None
    memory: Tensor
    powers: Tensor
    floors: Tensor


def probabilities(x: Tensor, fs: float) -> Tensor:
    """Return the speech probability of each frame of 10 ms.

    Args:
        x: float32 or float64, (..., time).
        fs: sample rate, Hz, >= 8000.

    Returns:
        (..., frames), in [0, 1], with x's type. Frame i begins at sample i * hop, hop = round(fs / 100); the last frame
        may be shorter.

    Raises:
        SampleRateError: the rate is below 8000 Hz.

    Examples:
        >>> time = torch.arange(32_000) / 16_000
        >>> hiss = 0.001 * torch.randn(32_000, generator=torch.Generator().manual_seed(0))
        >>> vowel = 0.1 * torch.sin(2 * torch.pi * 150 * time) ** 9 * (time > 1)
        >>> p = probabilities(hiss + vowel, 16_000)
        >>> p.shape, bool(p[10:90].mean() < 0.2), bool(p[110:190].mean() > 0.9)
        (torch.Size([200]), True, True)
    """
    detector = Detector(fs)
    return torch.cat([detector.process(x), detector.finish()], dim=-1)


def intervals(
    x: Tensor,
    fs: float,
    threshold: float = 0.7,
    least_speech_s: float = 0.1,
    least_pause_s: float = 0.3,
    keep_s: float = 0.1,
) -> list[Interval]:
    """Return the intervals of a recording that contain speech.

    Args:
        x: float32 or float64, (time,), or (channels, time), with the maximum probability over the channels.
        fs: sample rate, Hz, >= 8000.
        threshold: minimum probability of speech, in [0, 1].
        least_speech_s: shorter intervals are treated as noise and dropped, seconds.
        least_pause_s: minimum pause between intervals, seconds; shorter pauses are part of an interval.
        keep_s: margin added on both sides, seconds, at most half of the pause.

    Returns:
        Pairs (start, end) of samples, in order.

    Raises:
        ArgumentError: an argument is out of range. SampleRateError: the rate is below 8000 Hz.

    Examples:
        >>> time = torch.arange(48_000) / 16_000
        >>> hiss = 0.001 * torch.randn(48_000, generator=torch.Generator().manual_seed(0))
        >>> vowel = 0.1 * torch.sin(2 * torch.pi * 150 * time) ** 9 * ((time > 1) & (time < 2))
        >>> [(start, end)] = intervals(hiss + vowel, 16_000, keep_s=0.1)
        >>> print(f"{start / 16_000:.1f} s to {end / 16_000:.1f} s")
        0.8 s to 2.1 s
    """
    x = check_signal(x)
    if x.dim() > 2 or x.numel() == 0:
        raise ArgumentError(f"x must have the shape (time,) or (channels >= 1, time), got {tuple(x.shape)}")
    threshold = finite_number("threshold", threshold)
    if not 0 <= threshold <= 1:
        raise ArgumentError(f"threshold must lie in [0, 1], got {number_text(threshold)}")
    lengths = {"least_speech_s": least_speech_s, "least_pause_s": least_pause_s, "keep_s": keep_s}
    for name, value in lengths.items():
        if finite_number(name, value, "s") < 0:
            raise ArgumentError(f"{name} must lie in [0, inf) s, got {number_text(value)} s")
    p = probabilities(x.detach(), fs)
    flags = (p if p.dim() == 1 else p.amax(0)) >= threshold
    hop = _hop(checked_rate(fs))
    long_enough = np.zeros(len(flags), dtype=bool)
    for start, end in found_intervals.runs(flags.cpu().numpy()):
        long_enough[start:end] = end - start >= least_speech_s * FRAMES
    spoken = found_intervals.runs(long_enough, max(1, round(least_pause_s * FRAMES)))
    samples = [(start * hop, min(end * hop, x.shape[-1])) for start, end in spoken]
    return found_intervals.widened(samples, round(keep_s * fs), x.shape[-1])


class Detector:
    """Detect speech block by block, with the same result as `probabilities`. Gradients are not supported.

    Args:
        fs: sample rate, Hz, >= 8000.

    Examples:
        >>> x = torch.randn(2, 16_000)
        >>> detector = Detector(16_000)
        >>> parts = [detector.process(block) for block in x.split(1000, dim=-1)]
        >>> p = torch.cat([*parts, detector.finish()], dim=-1)
        >>> bool(torch.allclose(p, probabilities(x, 16_000), atol=1e-5))
        True
    """

    def __init__(self, fs: float) -> None:
        """Check the rate and begin."""
        self.fs = checked_rate(fs)
        if self.fs < 8000:
            raise SampleRateError(f"fs must lie in [8000, inf) Hz, got {number_text(self.fs)}")
        self._window, self._bands = _measurement(self.fs)
        self._silence = self._bands.sum(0) * self._window.square().sum() * SILENCE**2
        self.reset()

    @property
    def latency_samples(self) -> int:
        """Latency of a frame's probability after the end of the frame, in samples."""
        hop = _hop(self.fs)
        return AROUND * hop + len(self._window) - hop - (len(self._window) - hop) // 2

    def reset(self) -> None:
        """Reset the detector."""
        self._state: _State | None = None
        self._leading: tuple[int, ...] = ()
        self._heard = self._framed = 0

    def process(self, block: Tensor) -> Tensor:
        """Process a block and return the probabilities that are now known.

        Args:
            block: float32 or float64, (..., time). All blocks have the leading dimensions, the type and the device of
                the first.

        Returns:
            (..., frames), possibly with 0 frames.

        Raises:
            ArgumentError: the leading dimensions differ, or samples are not finite.
        """
        block = check_signal(block).detach()
        leading = tuple(block.shape[:-1])
        rows = (
            block.reshape(math.prod(leading), block.shape[-1]) if block.numel() else block.new_zeros(1, block.shape[-1])
        )
        if self._state is None:
            empty = block.new_zeros(len(rows), self._bands.shape[1], 0)
            ahead = (len(self._window) - _hop(self.fs)) // 2
            self._leading = leading
            self._state = _State(block.new_zeros(len(rows), ahead), None, empty, empty, empty)
        if leading != self._leading:
            raise ArgumentError(
                f"block must have the leading dimensions of the first, {self._leading}, got the shape "
                f"{tuple(block.shape)}"
            )
        self._state = self._followed(self._state, rows)
        self._heard += block.shape[-1]
        return self._known(0)

    def finish(self) -> Tensor:
        """Return the probabilities of the last frames, and reset the detector.

        Raises:
            ArgumentError: no block was processed.
        """
        if self._state is None:
            raise ArgumentError("finish must be called after at least one block, got none")
        hop = _hop(self.fs)
        missing = -(-self._heard // hop) - self._framed
        if missing:
            count = (missing - 1) * hop + len(self._window) - self._state.samples.shape[-1]
            silence = self._state.samples.new_zeros(len(self._state.samples), max(0, count))
            self._state = self._followed(self._state, silence)
        found = self._known(AROUND)
        self.reset()
        return found

    def _followed(self, state: _State, x: Tensor) -> _State:
        """Return the state after samples (rows, n)."""
        samples = torch.cat([state.samples, x], dim=-1)
        width, hop = len(self._window), _hop(self.fs)
        count = max(0, (samples.shape[-1] - width) // hop + 1)
        rest = samples[..., count * hop :].clone()
        if not count:
            return state._replace(samples=rest)
        frames = samples.unfold(-1, width, hop) * self._window.to(x)
        spectra = torch.fft.rfft(frames, 2 * (len(self._bands) - 1))
        powers = (spectra.real.square() + spectra.imag.square()) @ self._bands.to(x)
        powers = (powers + self._silence.to(x)).mT.contiguous()
        memory, before = state.memory, state.powers
        start, least = state.smoothing, torch.finfo(powers.dtype).min
        if start is None:  # as if the first frame had always been there
            start, before = SMOOTHING * powers[..., :1].double(), powers[..., :1].expand(-1, -1, AROUND)
            memory = powers.new_full((*powers.shape[:-1], MEMORY - 1), least)
        smoothed, after = lfilter([1 - SMOOTHING], [1.0, -SMOOTHING], powers, zi=start)
        if is_readable(after) and not bool(torch.isfinite(after).all()):  # the recursion forgets no NaN
            raise ArgumentError("block must be finite, got NaN or infinite samples")
        unsettled = max(0, SETTLING - self._framed)
        self._framed += count
        fresh = -smoothed
        fresh[..., : min(count, unsettled)] = least
        memory = torch.cat([memory, fresh], dim=-1)
        floors = torch.cat([state.floors, -_ops.sliding_max(memory, MEMORY)], dim=-1)
        latest = memory[..., memory.shape[-1] - MEMORY + 1 :].clone()
        return _State(rest, after, latest, torch.cat([before, powers], dim=-1), floors)

    def _known(self, behind: int) -> Tensor:
        """Return the probabilities of frames with AROUND others after them; `behind` are made from the last one."""
        assert self._state is not None
        powers, floors = self._state.powers, self._state.floors
        if behind and floors.shape[-1]:
            powers = torch.cat([powers, powers[..., -1:].expand(-1, -1, behind)], dim=-1)
        count = max(0, powers.shape[-1] - 2 * AROUND)
        if not count:
            return powers.new_zeros(*self._leading, 0)
        level = avg_pool1d(powers, 2 * AROUND + 1, 1)
        score = (level / floors[..., :count]).log().clamp(0, MOST).mean(-2)
        found = torch.sigmoid(STEEPNESS * (score - THRESHOLD))
        self._state = self._state._replace(powers=powers[..., count:], floors=floors[..., count:])
        return found[: math.prod(self._leading)].reshape(*self._leading, count)


def _hop(fs: float) -> int:
    return round(fs / FRAMES)


@lru_cache(maxsize=16)
def _measurement(fs: float) -> tuple[Tensor, Tensor]:
    """Return the window (width,), and which bins of its spectrum belong to which band, (bins, bands); float64."""
    width = round(WIDTH_S * fs)
    n_fft = 1 << (width - 1).bit_length()
    low, high = (1127 * math.log1p(hertz / 700) for hertz in (LOWEST, HIGHEST))
    hertz = 700 * np.expm1(np.linspace(low, high, BANDS + 1) / 1127)
    edges = np.round(hertz[hertz < fs / 2] * n_fft / fs).astype(int)
    bins = np.arange(n_fft // 2 + 1)[:, None]
    inside = (bins >= edges[:-1]) & (bins < np.maximum(edges[1:], edges[:-1] + 1))
    return torch.hann_window(width, dtype=torch.float64), torch.from_numpy(inside.astype(float))
