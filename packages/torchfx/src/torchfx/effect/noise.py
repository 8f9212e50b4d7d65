"""Noise at a signal-to-noise ratio: generated, or from a recording."""

from __future__ import annotations

import os
from abc import abstractmethod
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from torchfx import _ops, audio_io
from torchfx._ops.observers import modes_active
from torchfx.core.processor import Processor
from torchfx.core.resample import Resample
from torchfx.design.colored_noise import COLORS
from torchfx.errors import ArgumentError
from torchfx.functional.noise import (
    add_noise,
    audible,
    color_state,
    colored,
    gain_at,
    gain_over,
    key_of,
    magnitude,
    mixed,
    normal,
    places,
    white_level,
)
from torchfx.parameters import Value, choice, count, duration, duration_samples, number, recording, sample_rate
from torchfx.plan import State
from torchfx.plan.steps import lasting
from torchfx.rate import sample_rate as at_rate

__all__ = ["AddBackgroundNoise", "AddNoise"]

SNR_DOC = "of signal to noise, by their powers over the whole signal"


class _Added(Processor):
    """Noise that can be had for any stretch of the signal: a first pass measures both, a second one adds.

    A subclass declares `snr_db` and writes `start` and `stretch`.
    """

    @abstractmethod
    def start(self, shape: tuple[int, ...], rate: Any, device: Any) -> State:
        """Return the state of the noise at the signal's first sample; the arguments are those of `init_state`."""

    @abstractmethod
    def stretch(self, time: int, state: State) -> tuple[Tensor, State]:
        """Return the noise's next samples, (channels, time), (1, time) or (time,), and its state after them."""

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the magnitudes of signal and noise so far, and the noise's state in either pass."""
        levels = ((*shape[:-1], 1, 1), (1, 1)) if shape else ((1,), (1,))
        noise = self.start(shape, rate, device)
        return (*(torch.zeros(each, dtype=torch.float64, device=device) for each in levels), *noise, *noise)

    def measure(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the magnitudes so far, with a block more."""
        signal_level, noise_level, *rest = state
        half = len(rest) // 2
        level, after = self.level(x, tuple(rest[:half]))
        signal_level, noise_level = torch.hypot(signal_level, magnitude(x)), torch.hypot(noise_level, level)
        return (signal_level, noise_level, *after, *rest[half:])

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Add the noise at the ratio that was measured."""
        signal_level, noise_level, *rest = state
        half = len(rest) // 2
        gain = gain_at(cast(Value, self.snr_db), signal_level, noise_level)
        y, after = self.add(x, gain, tuple(rest[half:]))
        return y, (*state[: half + 2], *after)

    def level(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the magnitude of the noise for x, and its state after it."""
        noise, after = self.stretch(x.shape[-1], state)
        return magnitude(noise.expand(x.shape[-2:])), after

    def add(self, x: Tensor, gain: Tensor, state: State) -> tuple[Tensor, State]:
        """Add the noise to x, and return its state after it."""
        noise, after = self.stretch(x.shape[-1], state)
        return mixed(x, noise, gain), after

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the noisy signal; the noise is made once."""
        noise, _ = self.stretch(x.shape[-1], self.start(tuple(x.shape[:-1]), rate, x.device))
        return add_noise(x, noise, cast(Value, self.snr_db))


class AddNoise(_Added):
    """Add white, pink or brown noise at a signal-to-noise ratio.

    The ratio compares the power of an example, over all its channels and samples, with the power of its noise; silence
    stays silent. The noise is normally distributed and depends only on `seed`, channel and sample, so all calls and all
    examples of a batch get the same noise. Coloured noise is flat below fs / 10000. For different noise in each call
    and example, pass `torchfx.functional.noise` to `torchfx.functional.add_noise`.

    Examples:
        >>> import torch
        >>> x = torch.sin(torch.arange(48_000) / 10)
        >>> noise = AddNoise(20.0, "pink")(x) - x
        >>> round(float(10 * torch.log10(x.square().mean() / noise.square().mean())), 2)
        20.0
    """

    snr_db: Value = number(default=20.0, unit="dB", low=-200.0, high=200.0, draws=(0.0, 40.0), doc=SNR_DOC)
    color: str = choice(
        tuple(COLORS), default="white", doc="white, pink (-3.01 dB an octave) or brown (-6.02 dB an octave)"
    )
    seed: int = count(default=0, low=0, high=2**31 - 1, draws=(0, 9), doc="of the noise")

    def start(self, shape: tuple[int, ...], rate: Any, device: Any) -> State:
        """Return the count of random numbers, 0, and the state of the colouring filter."""
        place = torch.zeros(1, dtype=torch.int64, device=device)
        numbers = self._normal(place, 2 * COLORS[self.color], shape)
        return place + numbers.shape[-1], color_state(numbers, self.color)

    def stretch(self, time: int, state: State) -> tuple[Tensor, State]:
        """Return the next noise, float64."""
        place, filtered = state
        noise, filtered = colored(self._normal(place, time, tuple(filtered.shape[1:-1])), self.color, filtered)
        return noise, (place + time, filtered)

    def level(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the magnitude of the noise; white noise is not kept."""
        if self.color != "white":
            return super().level(x, state)
        place, time = places(state[0], x.shape[:-1]), x.shape[-1]
        return white_level(place, time, key_of(self.seed)), (state[0] + time, state[1])

    def add(self, x: Tensor, gain: Tensor, state: State) -> tuple[Tensor, State]:
        """Add the noise; white noise is generated while adding."""
        if self.color != "white":
            return super().add(x, gain, state)
        place = places(state[0], x.shape[:-1])
        y = _ops.noise_forward(x, gain[..., 0], place, key_of(self.seed), "normal")
        return y, (state[0] + x.shape[-1], state[1])

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the noisy signal."""
        if self.color != "white":
            return super().whole(x, rate)
        watched = torch.compiler.is_compiling() or modes_active()
        place, level = (_white if watched else _kept_white)(x.shape[-2:-1], x.shape[-1], self.seed, x.device)
        gain = gain_over(self.snr_db, magnitude(x), level)
        return _ops.noise_forward(x, gain[..., 0], place, key_of(self.seed), "normal")

    def _normal(self, place: Tensor, count: int, shape: tuple[int, ...]) -> Tensor:
        return normal(places(place, shape), count, key_of(self.seed))


def _white(shape: tuple[int, ...], time: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return where white noise begins in each of the channels (n,), or in a signal without any, (); its magnitude."""
    place = places(torch.zeros(1, dtype=torch.int64, device=device), shape)
    return place, audible(white_level(place, time, key_of(seed)))


@lru_cache(maxsize=64)
def _kept_white(shape: tuple[int, ...], time: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the same, found once: that takes as long as adding the noise."""
    with lasting():
        return _white(shape, time, seed, device)


class AddBackgroundNoise(_Added):
    """Add a recording at a signal-to-noise ratio; it is truncated or repeated to the length of the signal.

    The ratio compares the power of an example, over all its channels and samples, with the power of its noise.

    Raises:
        ArgumentError: the recording has neither one channel nor as many channels as the signal.

    Examples:
        >>> import torch
        >>> hum = torch.tensor([1.0, -1.0])
        >>> AddBackgroundNoise(hum, snr_db=20.0)(torch.ones(5))
        tensor([1.1000, 0.9000, 1.1000, 0.9000, 1.1000])
    """

    noise: Any = recording(doc="signal to add; a file is resampled to the signal's rate")
    snr_db: Value = number(default=20.0, unit="dB", low=-200.0, high=200.0, draws=(0.0, 40.0), doc=SNR_DOC)
    offset: float | str = duration(default="0 samples", doc="start position in the recording")
    fs: float | None = sample_rate(default=None)

    def rate_for(self, rate: float | None) -> float | None:
        """Return the rate (Hz) to work at; a recording given as samples with an offset in samples needs no rate."""
        return super().rate_for(rate) if isinstance(self.noise, str) or not isinstance(self.offset, str) else rate

    def start(self, shape: tuple[int, ...], rate: Any, device: Any) -> State:
        """Return the recording and the current position."""
        noise = recorded(self.noise, rate).to(device)
        if noise.dim() > 1 and noise.shape[-2] == 1:
            noise = noise.squeeze(-2)
        channels = shape[-1] if shape else 1
        if noise.dim() > 1 and (not shape or noise.shape[-2] != channels):
            raise ArgumentError(f"noise must have 1 channel or the signal's {channels}, got {noise.shape[-2]}")
        return noise, torch.tensor([duration_samples(self.offset, rate or 1)], device=device)

    def stretch(self, time: int, state: State) -> tuple[Tensor, State]:
        """Return the next part of the recording, which repeats from its beginning."""
        noise, place = state
        at = (place + torch.arange(time, device=place.device)) % noise.shape[-1]
        return noise[..., at], (noise, place + time)


def recorded(source: str | Tensor, rate: float | None) -> Tensor:
    """Return a recording's samples; a file is resampled to a sample rate (Hz)."""
    if not isinstance(source, str):
        return source
    samples, fs = audio_io.load(os.fspath(source))
    with at_rate(fs):
        found: Tensor = samples if rate is None else Resample(rate)(samples.double())
    return found
