"""Programme loudness, loudness range and true peak: ITU-R BS.1770-5, EBU R 128, EBU Tech 3341 and 3342.

    loudness.integrated(wave)                       # LUFS
    loudness.true_peak(x, fs=48_000)                # dBTP
    meter = loudness.Meter(48_000, channels=2)      # block by block

Signals are (..., channels, time), or (time,) for one channel; each item of a batch has a separate result, float64. A
`Wave` supplies its sample rate. Gradients flow through the levels; the gating decisions are treated as constant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from torchfx import _ops, audio_io
from torchfx.checks import number_text, whole_number
from torchfx.checks import sample_rate as checked_rate
from torchfx.core.resample import Resample
from torchfx.core.wave import Wave
from torchfx.design.weighting import weighting
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.plan import State
from torchfx.rate import ambient_rate
from torchfx.tensors import check_signal, is_readable

__all__ = [
    "AlbumLoudness",
    "FileLoudness",
    "Meter",
    "integrated",
    "loudness_range",
    "measure_album",
    "measure_file",
    "momentary",
    "range",
    "short_term",
    "true_peak",
]

STEPS = 100  # a second: Tech 3341's shortest tones (cases 13 and 14) begin at multiples of 20 ms
MOMENTARY, SHORT_TERM, HOP = 40, 300, 10  # steps: 400 ms, 3 s, and the 100 ms from one gated block to the next
OFFSET = -0.691  # dB: 997 Hz at full scale in one channel is -3.01 LUFS (BS.1770-5, annex 1)
ABSOLUTE_GATE = -70.0  # LUFS
RELATIVE_GATE, RANGE_GATE = -10.0, -20.0  # LU (BS.1770-5; Tech 3342)
RANGE_PERCENTILES = (10, 95)
OVERSAMPLING = 4  # BS.1770-5, annex 2
SURROUND = 1.41  # BS.1770-5, table 3: sources at the sides, 60 to 120 degrees from the front
WEIGHTS = {
    1: (1.0,),
    2: (1.0, 1.0),
    3: (1.0, 1.0, 1.0),
    4: (1.0, 1.0, SURROUND, SURROUND),
    5: (1.0, 1.0, 1.0, SURROUND, SURROUND),
    6: (1.0, 1.0, 1.0, 0.0, SURROUND, SURROUND),
    8: (1.0, 1.0, 1.0, 0.0, 1.0, 1.0, SURROUND, SURROUND),
}
"""Weights of channels by their number, in the order of WAV files: L R, C, LFE, surround or back, side."""

Weights = Sequence[float] | Tensor


def integrated(x: Tensor | Wave, fs: float | None = None, channel_weights: Weights | None = None) -> Tensor:
    """Measure the integrated loudness of a programme, gated at -70 LUFS and at 10 LU below the ungated loudness.

    Args:
        x: float32 or float64, (..., channels, time) or (time,), at least 0.4 s; or a Wave.
        fs: sample rate, Hz, >= 8000; None uses the Wave's rate or `torchfx.sample_rate`.
        channel_weights: factor on each channel's power, >= 0. The default is 1, with 1.41 for surround channels and 0
            for LFE, in the channel order of WAV files: L R, L R C, L R Ls Rs, L R C Ls Rs, 5.1 L R C LFE Ls Rs, 7.1 L R
            C LFE Lb Rb Ls Rs. Required for other numbers of channels.

    Returns:
        LUFS, float64, (...); -inf if nothing passes the gate.

    Raises:
        ArgumentError: the signal is too short or not finite, or the weights are invalid.
        SampleRateError: the sample rate is unknown or below 8000 Hz.

    Examples:
        >>> import math
        >>> tone = torch.sin(2 * math.pi * 997 / 48_000 * torch.arange(96_000, dtype=torch.float64))
        >>> print(f"{integrated(tone, 48_000):.2f} LUFS")
        -3.01 LUFS
        >>> print(f"{integrated(Wave(torch.stack([tone, tone]), 48_000)):.2f} LUFS")
        0.00 LUFS
    """
    return gated_loudness(_whole(x, fs, channel_weights))


def momentary(x: Tensor | Wave, fs: float | None = None, channel_weights: Weights | None = None) -> Tensor:
    """Measure the momentary loudness: of the last 400 ms, 100 times per second, without gating.

    Args:
        x, fs, channel_weights: as in `integrated`.

    Returns:
        LUFS, float64, (..., times), the first after 0.4 s, then every 10 ms, rounded to whole samples.

    Examples:
        >>> momentary(0.1 * torch.randn(2, 48_000), 48_000).shape
        torch.Size([61])
    """
    return _lufs(_windows(_whole(x, fs, channel_weights), MOMENTARY))


def short_term(x: Tensor | Wave, fs: float | None = None, channel_weights: Weights | None = None) -> Tensor:
    """Measure the short-term loudness: of the last 3 s, 100 times per second, without gating.

    Args:
        x, fs, channel_weights: as in `integrated`; at least 3 s.

    Returns:
        LUFS, float64, (..., times), the first after 3 s, then every 10 ms, rounded to whole samples.

    Examples:
        >>> short_term(0.1 * torch.randn(2, 4 * 48_000), 48_000).shape
        torch.Size([101])
    """
    return _lufs(_windows(_whole(x, fs, channel_weights), SHORT_TERM))


def loudness_range(x: Tensor | Wave, fs: float | None = None, channel_weights: Weights | None = None) -> Tensor:
    """Measure the loudness range: the distance between the 10th and 95th percentiles of the short-term loudness.

    The short-term loudness is sampled every 100 ms. Values below -70 LUFS, or more than 20 LU below the loudness of the
    rest, are ignored.

    Args:
        x, fs, channel_weights: as in `integrated`; at least 3 s.

    Returns:
        LRA in LU, float64, (...); 0 if nothing passes the gate.

    Examples:
        >>> import math
        >>> tone = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(480_000))
        >>> print(f"{loudness_range(torch.cat([0.1 * tone, 0.01 * tone]), 48_000):.1f} LU")
        20.0 LU
    """
    return _range(_whole(x, fs, channel_weights))


range = loudness_range


def true_peak(x: Tensor | Wave, fs: float | None = None) -> Tensor:
    """Measure the true peak: the largest magnitude over all channels, including peaks between samples.

    The signal is oversampled 4 times.

    The error for a tone is at most 0.17 dB up to fs/4, and at most 0.6 dB up to 0.46 fs, where the interpolation
    filter's transition band begins. The samples themselves are included.

    Args:
        x: float32 or float64, (..., channels, time) or (time,); or a Wave.
        fs: as in `integrated`.

    Returns:
        dBTP, decibels relative to full scale, float64, (...); -inf for silence.

    Examples:
        >>> tone = torch.tensor([-0.5, 0.5, 0.5, -0.5]).repeat(1000)  # at fs/4, 45 degrees off its peaks
        >>> x = tone * torch.hann_window(4000)
        >>> print(f"{true_peak(x, 48_000):.1f} dBTP, samples {20 * x.abs().max().log10():.1f} dBFS")
        -3.0 dBTP, samples -6.0 dBFS
    """
    x, rate = _signal(x, fs)
    between = _oversampling(rate).whole(x, rate)
    assert between is not None
    return _peak_level(torch.maximum(_largest(x), _largest(between)))


class Meter:
    """Loudness meter: measure block by block. Its values equal the functions of this module for all blocks so far.

    It stores 800 bytes per second of audio. Gradients are not supported.

    Args:
        fs: sample rate, Hz, >= 8000.
        channels: number of channels.
        channel_weights: as in `integrated`.

    Attributes:
        steps: number of 10 ms steps so far; momentary loudness needs 40, short-term loudness 300.

    Examples:
        >>> meter = Meter(48_000, channels=2)
        >>> x = 0.1 * torch.randn(2, 5 * 48_000)
        >>> for block in x.split(1024, dim=-1):
        ...     meter.process(block)
        >>> bool(abs(meter.integrated - integrated(x, 48_000)) < 1e-9)
        True
    """

    def __init__(self, fs: float, channels: int, channel_weights: Weights | None = None) -> None:
        """Check the arguments and reset."""
        self.fs, self.channels = checked_rate(fs), whole_number("channels", channels, 1)
        self._weights = checked_weights(channels, channel_weights)
        weighting("K", self.fs)  # raises where the rate is too low
        self._resample = _oversampling(self.fs)
        self.reset()

    def reset(self) -> None:
        """Reset the meter."""
        self._state: State = ()
        self._powers: list[Tensor] = []
        self._samples = 0
        self.steps = 0
        self._peak_state: State = ()
        self._peak = torch.zeros(1)

    def process(self, block: Tensor) -> None:
        """Measure the next block.

        Args:
            block: float32 or float64, (channels, time), or (time,) for one channel. All blocks must have the type and
                device of the first.

        Raises:
            ArgumentError: the shape is wrong, or a sample is NaN or infinite. The meter is unchanged.
        """
        x = check_signal(block).detach()
        x = x[None] if x.dim() == 1 else x
        if x.dim() != 2 or x.shape[0] != self.channels:
            raise ArgumentError(f"block must have the shape ({self.channels}, time), got {tuple(block.shape)}")
        if not self._state:
            self._state = rest((self.channels,), x.dtype, x.device)
            self._peak_state = self._resample.init_state((self.channels,), self.fs, x.dtype, x.device)
            self._peak = torch.zeros(1, dtype=x.dtype, device=x.device)
        powers, state = step_powers(x, self.fs, self._weights, self._state)
        between, self._peak_state = self._resample.step(x, self._peak_state, self.fs)
        self._peak = torch.stack([self._peak[0], _largest(x), _largest(between)]).amax(0, keepdim=True)
        self._state = state
        self._powers.append(powers)
        self._samples += x.shape[-1]
        self.steps += powers.shape[-1]

    def _heard(self) -> Tensor:
        """Return the steps so far."""
        self._powers = [torch.cat(self._powers)] if self._powers else [torch.zeros(0, dtype=torch.float64)]
        return self._powers[0]

    @property
    def integrated(self) -> Tensor:
        """Loudness since the beginning, gated, LUFS."""
        return gated_loudness(self._heard())

    @property
    def loudness_range(self) -> Tensor:
        """Loudness range since the beginning, LU."""
        return _range(self._heard())

    @property
    def momentary(self) -> Tensor:
        """Loudness of the last 400 ms, LUFS."""
        return _lufs(_windows(self._heard()[-MOMENTARY:], MOMENTARY)[-1])

    @property
    def short_term(self) -> Tensor:
        """Loudness of the last 3 s, LUFS."""
        return _lufs(_windows(self._heard()[-SHORT_TERM:], SHORT_TERM)[-1])

    @property
    def max_momentary(self) -> Tensor:
        """Largest momentary loudness so far, LUFS."""
        return _lufs(_windows(self._heard(), MOMENTARY)).amax()

    @property
    def max_short_term(self) -> Tensor:
        """Largest short-term loudness so far, LUFS."""
        return _lufs(_windows(self._heard(), SHORT_TERM)).amax()

    @property
    def true_peak(self) -> Tensor:
        """Largest true peak so far, dBTP."""
        if not self._state:
            return torch.tensor(-torch.inf, dtype=torch.float64)
        silence = self._peak_state[0].new_zeros(self.channels, self._resample.latency_samples(self.fs))
        tail, _ = self._resample.step(silence, self._peak_state, self.fs)
        return _peak_level(torch.maximum(self._peak[0], _largest(tail)))


@dataclass(frozen=True)
class FileLoudness:
    """Result of `measure_file`. A value is None if the file is too short for it (0.4 s or 3 s).

    Attributes:
        fs: sample rate, Hz.
        channels: number of channels.
        duration_s: length, seconds.
        integrated_lufs, max_momentary_lufs, max_short_term_lufs: loudness, LUFS; -inf is silence.
        loudness_range_lu: LU.
        true_peak_dbtp: dB relative to full scale.
    """

    fs: float
    channels: int
    duration_s: float
    integrated_lufs: float | None
    loudness_range_lu: float | None
    max_momentary_lufs: float | None
    max_short_term_lufs: float | None
    true_peak_dbtp: float


def measure_file(
    source: str | os.PathLike[str] | BinaryIO, channel_weights: Weights | None = None, block: int = 1 << 16
) -> FileLoudness:
    """Measure a file block by block.

    Args:
        source: a path, or a binary file object.
        channel_weights: as in `integrated`.
        block: frames per read, >= 1.

    Raises:
        AudioFileError: the file cannot be read.
        ArgumentError: samples are not finite, or the number of channels requires `channel_weights`.

    Examples:
        >>> import io, math, torchfx as fx
        >>> file = io.BytesIO()
        >>> tone = 0.1 * torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(4 * 48_000))
        >>> fx.Wave(torch.stack([tone, tone]), 48_000).save(file, format="wav")
        >>> _ = file.seek(0)
        >>> print(f"{measure_file(file).integrated_lufs:.1f} LUFS")
        -20.0 LUFS
    """
    return file_of(metered(source, channel_weights, block))


@dataclass(frozen=True)
class AlbumLoudness:
    """Result of `measure_album`. A value is None if all files are too short for it (0.4 s or 3 s).

    Attributes:
        duration_s: length of all files, seconds.
        integrated_lufs, max_momentary_lufs, max_short_term_lufs: loudness, LUFS; -inf is silence.
        loudness_range_lu: LU.
        true_peak_dbtp: the largest true peak, dB relative to full scale.
    """

    duration_s: float
    integrated_lufs: float | None
    loudness_range_lu: float | None
    max_momentary_lufs: float | None
    max_short_term_lufs: float | None
    true_peak_dbtp: float


def measure_album(
    sources: Sequence[str | os.PathLike[str] | BinaryIO], channel_weights: Weights | None = None, block: int = 1 << 16
) -> AlbumLoudness:
    """Measure several files as one programme: one gate over the 400 ms blocks of all files.

    No block spans two files, so their order does not matter. Files may differ in sample rate and channels. Album gain
    is measured in this way (ReplayGain 2, libebur128).

    Args:
        sources: one or more paths or binary file objects.
        channel_weights: as in `integrated`, for every file.
        block: frames per read, >= 1.

    Raises:
        AudioFileError: a file cannot be read.
        ArgumentError: there is no file; samples are not finite, or the number of channels requires `channel_weights`.

    Examples:
        >>> import math, tempfile, torchfx as fx
        >>> folder = tempfile.mkdtemp()
        >>> tone = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(4 * 48_000)).expand(2, -1)
        >>> fx.Wave(0.1 * tone, 48_000).save(f"{folder}/quiet.wav")
        >>> fx.Wave(0.2 * tone, 48_000).save(f"{folder}/loud.wav")
        >>> print(f"{measure_album([f'{folder}/quiet.wav', f'{folder}/loud.wav']).integrated_lufs:.1f} LUFS")
        -16.0 LUFS
    """
    return album_of([metered(source, channel_weights, block) for source in sources])


def metered(
    source: str | os.PathLike[str] | BinaryIO | audio_io.Reader,
    channel_weights: Weights | None = None,
    block: int = 1 << 16,
) -> Meter:
    """Return a meter that has measured a file."""
    whole_number("block", block, 1)
    with nullcontext(source) if isinstance(source, audio_io.Reader) else audio_io.Reader(source) as reader:
        meter = Meter(reader.fs, reader.channels, channel_weights)
        while (x := reader.read(block)).shape[-1]:
            meter.process(x)
    return meter


def file_of(meter: Meter) -> FileLoudness:
    """Return the loudness of a meter's signal."""
    return FileLoudness(meter.fs, meter.channels, **_values([meter]))


def album_of(meters: Sequence[Meter]) -> AlbumLoudness:
    """Return the loudness of the signals of all meters as one programme."""
    if not meters:
        raise ArgumentError("an album must have one or more files, got 0")
    return AlbumLoudness(**_values(meters))


def _values(meters: Sequence[Meter]) -> dict[str, Any]:
    """Return the values of `AlbumLoudness`."""

    def found(least: int, hop: int, measure: Callable[[Tensor], Tensor]) -> float | None:
        blocks = [_windows(meter._heard(), least, hop) for meter in meters if meter.steps >= least]
        return float(measure(torch.cat(blocks))) if blocks else None

    return {
        "duration_s": sum(meter._samples / meter.fs for meter in meters),
        "integrated_lufs": found(MOMENTARY, HOP, _gated),
        "loudness_range_lu": found(SHORT_TERM, HOP, _percentiles_apart),
        "max_momentary_lufs": found(MOMENTARY, 1, lambda blocks: _lufs(blocks).amax()),
        "max_short_term_lufs": found(SHORT_TERM, 1, lambda blocks: _lufs(blocks).amax()),
        "true_peak_dbtp": max(float(meter.true_peak) for meter in meters),
    }


# --- powers of steps --------------------------------------------------------------------------------------------------


def checked_weights(channels: int, given: Weights | None = None) -> Tensor:
    """Return the weight of each channel, float64, (channels,), or raise."""
    if given is None:
        if channels not in WEIGHTS:
            raise ArgumentError(f"channel_weights must be given for {channels} channels, got None")
        return torch.tensor(WEIGHTS[channels], dtype=torch.float64)
    found = torch.as_tensor(given, dtype=torch.float64)
    if found.shape != (channels,) or not bool((torch.isfinite(found) & (found >= 0)).all()):
        raise ArgumentError(
            f"channel_weights must be {channels} finite numbers >= 0, one for each channel, got {found.tolist()}"
        )
    return found


def rest(shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
    """Return the state of `step_powers` before a signal with leading dimensions (..., channels)."""
    sections = weighting("K", 48_000).shape[-2]
    return (
        torch.zeros(sections, *shape, 2, dtype=torch.float64, device=device),
        torch.zeros(*shape, 0, dtype=dtype, device=device),
    )


def step_powers(x: Tensor, rate: float, weights: Tensor, state: State) -> tuple[Tensor, State]:
    """Return the mean squares of the K-weighted signal in steps of 10 ms, its channels added.

    Args:
        x: (..., channels, time).
        rate: sample rate, Hz. Steps have rate / 100 samples, rounded.
        weights: each channel's.
        state: the filter's state, and what the blocks before have left of a step.

    Returns:
        float64, (..., steps), and the state after them.
    """
    y, after = _ops.parallel_iir_forward(x, weighting("K", rate).to(x.device), state[0])
    y = torch.cat([state[1], y], dim=-1) if state[1].shape[-1] else y
    width = round(rate / STEPS)
    count = y.shape[-1] // width
    steps, left = y[..., : count * width].unflatten(-1, (count, width)), y[..., count * width :]
    squares = torch.linalg.vector_norm(steps, dim=-1).double().square() / width
    powers = (weights.to(x.device)[:, None] * squares).sum(-2)
    if is_readable(after) and not bool(torch.isfinite(after).all()):  # the recursion forgets no NaN
        raise ArgumentError("x must be finite to be measured, got NaN or infinite samples")
    return powers, (after, left.clone() if count else left)


def gated_loudness(powers: Tensor) -> Tensor:
    """Return the integrated loudness (...), LUFS, of steps (..., steps)."""
    return _gated(_windows(powers, MOMENTARY, HOP))


def _gated(blocks: Tensor) -> Tensor:
    """Return the integrated loudness (...), LUFS, of blocks of 400 ms (..., blocks)."""
    return _lufs(_mean(blocks, _passing(blocks, RELATIVE_GATE)))


def _range(powers: Tensor) -> Tensor:
    """Return the loudness range (...), LU, of steps (..., steps)."""
    return _percentiles_apart(_windows(powers, SHORT_TERM, HOP))


def _percentiles_apart(blocks: Tensor) -> Tensor:
    """Return the loudness range (...), LU, of blocks of 3 s (..., blocks)."""
    passing = _passing(blocks, RANGE_GATE)
    count = passing.sum(-1, keepdim=True)
    # Those that pass in front, in order; where none does, the first stands for both percentiles.
    ordered = torch.where(passing, blocks, torch.inf).sort(dim=-1).values
    ordered = torch.where(count > 0, ordered, 1.0)
    low, high = (
        _lufs(ordered.gather(-1, ((count - 1).clamp(min=0) * part / 100).round().long()).squeeze(-1))
        for part in RANGE_PERCENTILES
    )
    return high - low


def _passing(blocks: Tensor, relative: float) -> Tensor:
    """Return which blocks are above the absolute gate, and above the relative one that follows from them."""
    blocks = blocks.detach()
    loud = blocks > _power(ABSOLUTE_GATE)
    return loud & (blocks > _mean(blocks, loud)[..., None] * 10 ** (relative / 10))


def _mean(blocks: Tensor, passing: Tensor) -> Tensor:
    return (blocks * passing).sum(-1) / passing.sum(-1).clamp(min=1)


def _windows(powers: Tensor, count: int, hop: int = 1) -> Tensor:
    """Return the mean over `count` neighbouring steps, every `hop` steps."""
    if powers.shape[-1] < count:
        steps = powers.shape[-1]
        heard = f"{number_text(steps / STEPS)} s" if steps else f"less than {number_text(1 / STEPS)} s"
        least = number_text(count / STEPS)
        raise ArgumentError(f"the signal must last at least {least} s for this measurement, got {heard}")
    return avg_pool1d(powers.reshape(-1, 1, powers.shape[-1]), count, hop).reshape(*powers.shape[:-1], -1)


def _lufs(power: Tensor) -> Tensor:
    return OFFSET + _decibels(power)


def _decibels(power: Tensor) -> Tensor:
    heard = power > 0
    level = 10 * torch.where(heard, power, 1.0).log10()  # of silence the gradient is 0, not NaN
    return torch.where(heard, level, -torch.inf)


def _power(lufs: float) -> float:
    return float(10 ** ((lufs - OFFSET) / 10))


# --- signals ----------------------------------------------------------------------------------------------------------


def _whole(x: Tensor | Wave, fs: float | None, channel_weights: Weights | None) -> Tensor:
    """Return the steps (..., steps) of a signal."""
    x, rate = _signal(x, fs)
    given = checked_weights(x.shape[-2], channel_weights)
    return step_powers(x, rate, given, rest(tuple(x.shape[:-1]), x.dtype, x.device))[0]


def _signal(x: Tensor | Wave, fs: float | None) -> tuple[Tensor, float]:
    """Return the samples (..., channels, time) and their rate, Hz."""
    if isinstance(x, Wave):
        if fs is not None and checked_rate(fs) != x.fs:
            raise SampleRateError(f"fs must be the wave's {number_text(x.fs)} Hz, or None, got {number_text(fs)}")
        fs = x.fs
        x = x.ys
    fs = ambient_rate() if fs is None else fs
    if fs is None:
        raise SampleRateError("fs must be given in Hz for a tensor, got None; or pass a Wave")
    x = check_signal(x)
    return x[None] if x.dim() == 1 else x, checked_rate(fs)


def _oversampling(rate: float) -> Resample:
    return Resample(OVERSAMPLING * rate)


def _largest(x: Tensor) -> Tensor:
    """Return the largest magnitude over channels and time."""
    if x.shape[-1] == 0:
        return x.new_zeros(x.shape[:-2])
    return torch.maximum(x.amax((-2, -1)), -x.amin((-2, -1)))


def _peak_level(peak: Tensor) -> Tensor:
    """Return the level of a magnitude, dB relative to full scale."""
    if is_readable(peak) and not bool(torch.isfinite(peak).all()):
        raise ArgumentError("x must be finite to be measured, got NaN or infinite samples")
    return _decibels(peak.double().square())
