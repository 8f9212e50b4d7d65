"""Spectrograms and their inverses."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import fold
from torch.nn.functional import pad as padded

from torchfx._ops.mel.composite import framed
from torchfx._ops.mel.cpu import Settings
from torchfx.checks import callers_level
from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag, number, sample_rate, window
from torchfx.plan import State
from torchfx.spectral.framed import PAD_MODES, Windowed, mel_frames, window_taps

__all__ = [
    "GriffinLim",
    "InverseSpectrogram",
    "SpectralCentroid",
    "Spectrogram",
    "band_settings",
    "griffin_lim",
    "overlap_added",
]

UNCOVERED = "window must cover every sample, and that of {} samples, {} apart, does not (center={}): {}"
LEAST_COVER = 1e-11
"""The least sum of squared windows that is divided by, as in `torch.istft`."""

GREATEST_HOP = "hop_length must be <= win_length = {}, or samples between the windows are lost, got {}"


def band_settings(
    of: Windowed,
    x: Tensor,
    filters: Tensor | None,
    power: float,
    gain: float = 0.0,
    floor: float = 0.0,
    offset: float = 0.0,
) -> Settings:
    """Return the arguments of `mel_frames` for bands, or with a gain for gain log(max(band + offset, floor))."""
    reflect = of.center and of.pad_mode == "reflect"
    return (of.taps(x), filters, of.n_fft, of.hop), (reflect, power, 0.0, False, gain, floor, offset)


class Spectrogram(Windowed):
    """Spectrogram: power, magnitude or complex spectra of windows along a signal.

    The output has the shape (..., n_fft // 2 + 1, frames); bin k lies at k fs / n_fft. Equals torchaudio's
    `Spectrogram`.

    Examples:
        >>> import torch
        >>> tone = torch.cos(2 * torch.pi * 0.25 * torch.arange(1000))
        >>> found = Spectrogram(n_fft=64, hop_length=32)(tone)
        >>> found.shape, found[:, 10].argmax().item()  # a quarter of the rate
        (torch.Size([33, 32]), 16)
    """

    power: float | None = number(
        default=2.0, low=0.0, open_low=True, draws=(1.0, 2.0), learnable=False,
        optional=True, doc="exponent of the magnitude; None: the spectra, complex",
    )  # fmt: skip

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, self.n_fft // 2 + 1)

    def settings(self, x: Tensor, rate: Any) -> Settings | None:
        """Return the arguments of `_ops.mel_forward`; None where spectra are complex."""
        return band_settings(self, x, None, self.power) if self.power else None

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the spectra of some frames."""
        if settings := self.settings(x, rate):
            return mel_frames(x, settings, origin, count)
        taps = self.taps(x).to(x.dtype)
        frames = framed(x, taps.shape[-1], self.hop, origin, count, self.center and self.pad_mode == "reflect") * taps
        left = (self.n_fft - taps.shape[-1]) // 2
        frames = padded(frames, (left, self.n_fft - taps.shape[-1] - left))
        spectra: Tensor = torch.fft.rfft(frames)
        return spectra.transpose(-1, -2)


class InverseSpectrogram(Feature):
    """Inverse STFT: the signal whose complex spectra are closest to the input.

    It inverts `Spectrogram(power=None)`.

    The input is complex, (..., n_fft // 2 + 1, frames), the output (..., time). Windowed frames are overlap-added and
    divided by the sum of the squared windows (D. W. Griffin, J. S. Lim, Signal Estimation from Modified Short-Time
    Fourier Transform, IEEE Trans. ASSP 32 (2), 1984), as in `torch.istft`. In a stream a sample is returned with the
    last frame that covers it, `latency_frames` after its own frame.

    Raises:
        ArgumentError: the hop exceeds the window, or no window covers some samples.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 1000)
        >>> chain = Spectrogram(n_fft=64, power=None) | InverseSpectrogram(n_fft=64, length=1000)
        >>> bool((chain(x) - x).abs().max() < 1e-5)
        True
    """

    takes: ClassVar[str] = "features"
    gives: ClassVar[str] = "samples"
    takes_complex: ClassVar[bool] = True
    n_fft: int = count(default=400, low=2, draws=(16, 64), doc="samples that are transformed")
    win_length: int | None = count(default=None, draws=(8, 16), doc="samples of the window; None: n_fft")
    hop_length: int | None = count(
        default=None, draws=(4, 16), doc="samples from one frame to the next; None: half of win_length"
    )
    pad: int = count(default=0, low=0, draws=(0, 4), doc="zeros that were put before and after the signal")
    window: Any = window(default="hann", doc="window")
    normalized: bool = flag(default=False, doc="whether spectra were divided by the root of the window's energy")
    center: bool = flag(default=True, doc="whether frame f has its middle at sample f hop_length")
    pad_mode: str = choice(PAD_MODES, default="reflect", doc="what lay beyond the signal's ends; changes nothing")
    length: int | None = count(default=None, doc="samples of the result; None: as many as the frames cover")

    def check_parameters(self) -> None:
        """Raise if the windows do not overlap."""
        length = self.win_length or self.n_fft
        if length > self.n_fft:
            raise ArgumentError(f"win_length must be <= n_fft = {self.n_fft}, got {length}")
        if self.hop_length is not None and self.hop_length > length:
            raise ArgumentError(GREATEST_HOP.format(length, self.hop_length))

    @property
    def hop(self) -> int:
        """Samples between frames."""
        return self.hop_length or max(1, (self.win_length or self.n_fft) // 2)

    @property
    def start(self) -> int:
        """Position of the first sample of the result in the first frame."""
        return self.pad + (self.n_fft // 2 if self.center else 0)

    @property
    def latency_frames(self) -> int:
        """Latency in frames: after frame f + latency_frames, a stream has returned samples up to (f + 1) hop_length."""
        return -(-(self.start + self._held) // self.hop)

    def refusal(self) -> str:
        """Return "", since streams are supported."""
        return ""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the leading dimensions of the samples for spectra (..., bins)."""
        return tuple(shape[:-1])

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the samples."""
        taps = window_taps(self.window, self.win_length or self.n_fft).to(x.device)
        return overlap_added(self._scaled(x, taps), taps, self.n_fft, self.hop, self.length, self.pad, self.center)

    @property
    def _held(self) -> int:
        """How many samples that no further frame covers a stream holds: the result may end before them."""
        return max(0, self.start - (self.n_fft - self.hop))

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return zeros for pending sums, and a frame count of 0."""
        sums = torch.zeros(*shape[:-1], self._held + self.n_fft - self.hop, dtype=dtype, device=device)
        return sums, torch.zeros(1, dtype=torch.int64)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the samples that no later frame covers."""
        sums, count = state
        if not x.shape[-1]:
            return sums[..., :0], state
        window, begun, time = self._whole_window(sums), int(count) * self.hop - self._held, x.shape[-1] * self.hop
        frames = torch.fft.irfft(self._scaled(x, window).transpose(-1, -2), self.n_fft) * window
        rows = frames.reshape(-1, *frames.shape[-2:]).transpose(-1, -2)
        size = (1, time + self.n_fft - self.hop)
        added = fold(rows, size, (1, self.n_fft), stride=(1, self.hop)).reshape(*frames.shape[:-2], size[1])
        added, after = padded(sums, (0, time)) + padded(added, (self._held, 0)), count + x.shape[-1]
        end = begun + time if self.length is None else min(begun + time, self.start + self.length)
        return self._divided(added, window, begun, end, int(after)), (added[..., time:], after)

    def finish(self, state: State, rate: Any) -> Tensor:
        """Return the samples that the last frames cover, padded with zeros to `length`."""
        sums, count = state
        frames = int(count)
        if not frames:
            return sums[..., :0]
        begun = frames * self.hop - self._held
        covered = begun + sums.shape[-1]
        check_covered(covered, self.n_fft, self.hop, self.length, self.start)
        end = covered - self.start if self.length is None else self.start + self.length
        y = self._divided(sums, self._whole_window(sums), begun, min(end, covered), frames)
        return padded(y, (0, max(0, end - max(covered, self.start))))

    def _whole_window(self, like: Tensor) -> Tensor:
        taps = window_taps(self.window, self.win_length or self.n_fft).to(like)
        left = (self.n_fft - len(taps)) // 2
        return padded(taps, (left, self.n_fft - len(taps) - left))

    def _scaled(self, x: Tensor, taps: Tensor) -> Tensor:
        """Return the spectra before they were normalised."""
        if x.shape[-2] != self.n_fft // 2 + 1:
            raise ArgumentError(f"x must have n_fft // 2 + 1 = {self.n_fft // 2 + 1} bins, got {x.shape[-2]}")
        return x * taps.square().sum().sqrt().to(x.real.dtype) if self.normalized else x

    def _divided(self, added: Tensor, window: Tensor, begun: int, end: int, count: int) -> Tensor:
        """Return sums up to `end`, without those before the result's start, over the sums of squared windows.

        Places are counted from the first frame's first sample; `added` begins at `begun`.
        """
        at = torch.arange(max(begun, self.start), max(end, begun, self.start), device=added.device)
        frame = at // self.hop - torch.arange(-(-self.n_fft // self.hop), device=added.device)[:, None]
        inside = at - frame * self.hop
        covers = (frame >= 0) & (frame < count) & (inside < self.n_fft)
        squares = torch.where(covers, window.square()[inside.clamp(max=self.n_fft - 1)], 0.0).sum(0)
        if len(at) and float(squares.min()) < LEAST_COVER:
            raise ArgumentError(
                UNCOVERED.format(self.win_length or self.n_fft, self.hop, self.center, "its squares add up to 0 there")
            )
        return added[..., at - begun] / squares


def overlap_added(
    x: Tensor,
    taps: Tensor,
    n_fft: int,
    hop: int,
    length: int | None = None,
    pad: int = 0,
    center: bool = True,
    onesided: bool = True,
) -> Tensor:
    """Return the signal (..., time) of complex spectra (..., bins, frames): windowed frames, added up.

    Args:
        x: the spectra.
        taps: window (win_length,).
        n_fft, hop, pad, center, onesided: what the spectra were made with.
        length: samples of the result; None: as many as the frames cover.

    Raises:
        ArgumentError: samples that no window covers, frames that cover none of the result.
    """
    side, covered = n_fft // 2 if center else 0, (x.shape[-1] - 1) * hop + n_fft
    check_covered(covered, n_fft, hop, length, side + pad)
    rows, whole = x.reshape(-1, *x.shape[-2:]), None if length is None else length + 2 * pad
    window = taps.to(x.real.dtype)
    missing = 0 if whole is None else max(0, whole - (covered - side))
    whole = None if whole is None else whole - missing
    try:
        y = torch.istft(rows, n_fft, hop, len(taps), window, center, onesided=onesided, length=whole)
    except RuntimeError as error:
        raise ArgumentError(UNCOVERED.format(len(taps), hop, center, str(error).splitlines()[0])) from error
    y = padded(y, (0, missing))[..., pad : y.shape[-1] + missing - pad]
    return y.reshape(*x.shape[:-2], y.shape[-1])


def check_covered(covered: int, n_fft: int, hop: int, length: int | None, start: int) -> None:
    """Raise where frames end before the result begins, `start` samples after their first one; warn of too few.

    Args:
        covered: how many samples the frames cover.
        n_fft, hop, length: of the processor.
        start: where the result begins, and how long before their end it ends where `length` is None.
    """
    if length is None and covered <= 2 * start:
        least = -(-(2 * start + 1 - n_fft) // hop) + 1
        raise ArgumentError(
            f"x must have at least {least} frames of {n_fft} samples, {hop} apart, or no sample is left, "
            f"got {(covered - n_fft) // hop + 1}"
        )
    if length is not None and length > covered - start:
        text = (
            f"length is above the {max(0, covered - start)} samples that the frames cover, and zeros follow: {length}"
        )
        warnings.warn(text, stacklevel=callers_level())


class GriffinLim(Feature):
    """Griffin-Lim: iteratively find a signal with given magnitude spectra.

    The input is real, (..., n_fft // 2 + 1, frames), the output (..., time). Source: N. Perraudin, P. Balazs, P. L.
    Søndergaard, A Fast Griffin-Lim Algorithm, WASPAA 2013; a momentum of 0 gives the algorithm of Griffin and Lim,
    1984.

    Examples:
        >>> import torch
        >>> tone = torch.sin(0.3 * torch.arange(2000))
        >>> again = GriffinLim(n_fft=128)(Spectrogram(n_fft=128)(tone))
        >>> powers = Spectrogram(n_fft=128)(again)[:, 10]
        >>> powers.argmax().item()  # 0.3 / (2 pi) 128
        6
    """

    takes: ClassVar[str] = "features"
    gives: ClassVar[str] = "samples"
    n_fft: int = count(default=400, low=2, draws=(16, 64), doc="samples that are transformed")
    n_iter: int = count(default=32, draws=(1, 4), doc="iterations")
    win_length: int | None = count(default=None, draws=(8, 16), doc="samples of the window; None: n_fft")
    hop_length: int | None = count(
        default=None, draws=(4, 8), doc="samples from one frame to the next; None: half of win_length"
    )
    window: Any = window(default="hann", doc="window")
    power: float = number(default=2.0, low=0.0, open_low=True, learnable=False, doc="the magnitudes' exponent")
    momentum: float = number(default=0.99, low=0.0, high=1.0, open_high=True, learnable=False, doc="of the iteration")
    length: int | None = count(default=None, doc="samples of the result; None: as many as the frames cover")
    rand_init: bool = flag(default=True, doc="whether phases begin at random, by PyTorch's generator, else at 0")

    def check_parameters(self) -> None:
        """Raise if the windows do not overlap."""
        InverseSpectrogram(self.n_fft, self.win_length, self.hop_length)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, since each iteration changes the phases of frames by those of all around them"

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the samples."""
        length = self.win_length or self.n_fft
        hop, taps = self.hop_length or max(1, length // 2), window_taps(self.window, length).to(x.device)
        magnitude = x ** (1 / self.power)
        return griffin_lim(magnitude, taps, self.n_fft, hop, self.n_iter, self.momentum, self.length, self.rand_init)


def griffin_lim(
    magnitude: Tensor,
    taps: Tensor,
    n_fft: int,
    hop: int,
    n_iter: int,
    momentum: float,
    length: int | None,
    rand_init: bool,
) -> Tensor:
    """Return a signal (..., time) whose spectra have magnitudes (..., bins, frames); see `GriffinLim`."""
    if length is not None and length // hop + 1 != magnitude.shape[-1]:
        least = (magnitude.shape[-1] - 1) * hop
        raise ArgumentError(
            f"length must lie in [{least}, {least + hop - 1}] samples for {magnitude.shape[-1]} frames, {hop} apart, "
            f"got {length}"
        )
    shape, dtype = magnitude.shape, magnitude.dtype
    magnitude, window = magnitude.reshape(-1, *shape[-2:]), taps.to(dtype)
    phase = (
        torch.rand(magnitude.shape, dtype=dtype, device=magnitude.device) * (2 * torch.pi)
        if rand_init
        else 0 * magnitude
    )
    turned = torch.polar(torch.ones_like(magnitude), phase)
    before = torch.zeros_like(turned)
    for _ in range(n_iter):
        signal = overlap_added(magnitude * turned, taps, n_fft, hop, length)
        rebuilt = torch.stft(signal, n_fft, hop, len(taps), window, return_complex=True)
        ahead = rebuilt - momentum / (1 + momentum) * before
        turned = ahead / (ahead.abs() + torch.finfo(dtype).tiny)
        before = rebuilt
    return overlap_added(magnitude * turned, taps, n_fft, hop, length).reshape(*shape[:-2], -1)


class SpectralCentroid(Windowed):
    """Spectral centroid: the magnitude-weighted mean frequency of each window's spectrum, in Hz.

    The output has the shape (..., 1, frames); it is 0 for silent windows.

    Examples:
        >>> import torch
        >>> tone = torch.cos(2 * torch.pi * 1000 / 8000 * torch.arange(8000))
        >>> found = SpectralCentroid(n_fft=256, window="blackman", fs=8000)(tone)
        >>> bool((found[0, 2:-2] - 1000).abs().max() < 1)
        True
    """

    fs: float | None = sample_rate(default=None)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, 1)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the centroids of some frames."""
        magnitudes = mel_frames(x, band_settings(self, x, None, 1.0), origin, count)
        frequencies = torch.linspace(0, rate / 2, self.n_fft // 2 + 1, dtype=x.dtype, device=x.device)
        total = magnitudes.sum(-2, keepdim=True)
        return (frequencies @ magnitudes)[..., None, :] / torch.where(total > 0, total, 1.0)
