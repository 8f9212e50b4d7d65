"""Constant-Q and variable-Q transforms and their inverses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx.checks import number_text
from torchfx.core.feature import Feature
from torchfx.design.constant_q import COSINES, LogBands, erb_offset
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag, number, sample_rate

__all__ = ["CQT", "VQT", "InverseCQT", "InverseVQT"]

Numbers = npt.NDArray[Any]

C1 = 32.70319566257483
"""Hz, 440 2^(-45/12)."""


class LogSpaced(Feature):
    """The parameters of constant-Q and variable-Q transforms, with librosa's names and defaults."""

    hop_length: int = count(default=512, draws=(2, 8), doc="samples from one frame to the next")
    fmin: float = number(
        default=C1, low=0.0, open_low=True, unit="Hz", draws=(200.0, 800.0), learnable=False, doc="lowest centre"
    )
    n_bins: int = count(default=84, draws=(2, 12), doc="bins")
    bins_per_octave: int = count(default=12, draws=(3, 12), doc="bins in an octave")
    window: str = choice(tuple(COSINES), default="hann", doc="the bins' shape over frequency")
    gamma: float | None = number(
        default=None, low=0.0, unit="Hz", draws=(0.0, 40.0), learnable=False, optional=True,
        doc="added to each bin's width; None: widths are a multiple of the ear's, 24.7 + 0.108 f Hz",
    )  # fmt: skip

    @property
    def bandwidth_offset(self) -> float:
        """Offset added to each bandwidth, Hz."""
        return erb_offset(self.bins_per_octave) if self.gamma is None else self.gamma

    @property
    def settings(self) -> tuple[float, int, int, float, str]:
        """The arguments of `LogBands`."""
        return self.fmin, self.n_bins, self.bins_per_octave, self.bandwidth_offset, self.window

    def refusal(self) -> str:
        """Return why the processor can't run in a stream."""
        return "needs the whole signal, since its bins are parts of the spectrum of all samples"

    def rows(self, rate: float, residual: bool) -> int:
        """Return the number of rows of the transform; raise if its parameters are invalid at the rate."""
        return checked_rows(self.settings, float(rate), self.hop_length, residual)


def checked_rows(settings: tuple[float, int, int, float, str], rate: float, hop: int, residual: bool) -> int:
    """Return the number of bins and residual rows.

    Raises:
        ArgumentError: bins above fs/2, or, with residual rows, a hop too large for an exact inverse.
    """
    bands, half = LogBands(*settings), rate / 2
    if bands.fmin > half:
        raise ArgumentError(f"fmin must lie in (0, fs/2] = (0, {number_text(half)}] Hz, got {number_text(bands.fmin)}")
    most = int(np.floor(bands.bins_per_octave * np.log2(half / bands.fmin) + 1e-9)) + 1
    if bands.n_bins > most:
        raise ArgumentError(
            f"n_bins must lie in [1, {most}], or bins from fmin = {number_text(bands.fmin)} Hz on, "
            f"{bands.bins_per_octave} in an octave, lie above fs/2 = {number_text(half)} Hz, got {bands.n_bins}"
        )
    width = float(bands.widths[-1])
    if residual and width > rate:
        raise ArgumentError(
            f"gamma must be lower for an exact inverse: the widest bin has {width:.5g} Hz, and fs is "
            f"{number_text(rate)} Hz, got {number_text(bands.gamma)}"
        )
    if residual and hop * width > rate:
        raise ArgumentError(
            f"hop_length must lie in [1, {int(rate / width)}] for an exact inverse: fs / hop_length must be >= the "
            f"widest bin's {width:.5g} Hz, got {hop}"
        )
    return bands.n_bins + (sum(bands.residual_rows(rate, hop)) if residual else 0)


class LogSpectrum(LogSpaced):
    """Base class: transforms samples to bins."""

    residual: bool = flag(
        default=False, doc="whether rows for what lies below and above the bins follow, which the inverse needs"
    )

    def check_parameters(self) -> None:
        """Raise if bins lie above fs/2, or the hop is too large for an inverse."""
        if self.fs is not None:
            self.rows(self.fs, self.residual)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions except frames; residual rows are counted if `fs` is given."""
        if self.residual and self.fs is None:
            raise ArgumentError("fs must be given, in Hz, to count residual rows, got None")
        return (*shape, self.n_bins if self.fs is None else self.rows(self.fs, self.residual))

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the bins of all frames."""
        rows, hop, frames = self.rows(rate, self.residual), self.hop_length, -(-x.shape[-1] // self.hop_length)
        table = analysis_table(self.settings, float(rate), frames, hop, self.residual, x.dtype)
        spectrum = spectrum_of(padded(x, (0, frames * hop - x.shape[-1])), hop)
        found: Tensor = torch.fft.ifft(summed(spectrum, table, rows * frames).unflatten(-1, (rows, frames)))
        return found


class LogSynthesis(LogSpaced):
    """Base class: transforms bins and residual rows to samples."""

    takes: ClassVar[str] = "features"
    gives: ClassVar[str] = "samples"
    takes_complex: ClassVar[bool] = True
    length: int | None = count(default=None, doc="samples of the result; None: frames x hop_length")

    def check_parameters(self) -> None:
        """Raise if bins lie above fs/2, or the hop is too large."""
        if self.fs is not None:
            self.rows(self.fs, residual=True)

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the samples."""
        rows, frames, hop = self.rows(rate, residual=True), x.shape[-1], self.hop_length
        if x.shape[-2] != rows:
            raise ArgumentError(
                f"x must have {rows} rows, n_bins = {self.n_bins} and those that residual=True adds, got {x.shape[-2]}"
            )
        if self.length is not None and -(-self.length // hop) != frames:
            raise ArgumentError(
                f"length must lie in [{(frames - 1) * hop + 1}, {frames * hop}] samples for {frames} frames, {hop} "
                f"apart, got {self.length}"
            )
        table = synthesis_table(self.settings, float(rate), frames, hop, x.real.dtype)
        spectrum = summed(torch.fft.fft(x).flatten(-2), table, frames * hop // 2 + 1)
        return samples_of(spectrum, frames, hop)[..., : self.length]


class CQT(LogSpectrum):
    """Constant-Q transform: complex spectra with bins at fmin 2^(k / bins_per_octave) Hz, all with the same Q.

    The output has the shape (..., n_bins, frames), with a frame for every `hop_length` samples begun; frame m belongs
    to sample m hop_length. A sine of amplitude A at a bin's centre has the magnitude A there. With b bins per octave, a
    bin's width is (2^(1/b) - 2^(-1/b)) times its centre frequency, and its response is 0 from the next bin's centre on.
    The bins are filters on the spectrum of the whole signal, at positive frequencies only. The last hop is padded with
    zeros, and the transform is circular: append zeros if the wrap-around is audible. (A nonstationary Gabor transform:
    Velasco, Holighaus, Dörfler, Grill, DAFx 2011.)

    `residual` appends rows for the rest of the spectrum, below the bins first. `InverseCQT` then reconstructs the
    samples exactly, and `hop_length` must be <= fs / width of the highest bin.

    Raises:
        ArgumentError: bins above fs/2; with `residual`, a hop above fs / width.

    Examples:
        >>> import torch
        >>> tone = torch.sin(2 * torch.pi * 440 / 22_050 * torch.arange(22_050))
        >>> found = CQT(fs=22_050)(tone).abs()
        >>> found.shape, found[:, 20].argmax().item()  # A4, 45 semitones above C1
        (torch.Size([84, 44]), 45)
    """

    gamma = 0.0
    fs: float | None = sample_rate(default=None)


class VQT(LogSpectrum):
    """Variable-Q transform: the bins of `CQT`, but gamma Hz wider, with better time resolution at low frequencies.

    Source: C. Schörkhuber, A. Klapuri, N. Holighaus, M. Dörfler, AES 53rd Conference, 2014.

    Raises:
        ArgumentError: bins above fs/2; with `residual`, a hop above fs / width of the highest bin.

    Examples:
        >>> import torch
        >>> VQT(hop_length=256, n_bins=60, fs=22_050)(torch.randn(2, 22_050)).shape
        torch.Size([2, 60, 87])
    """

    fs: float | None = sample_rate(default=None)


class InverseCQT(LogSynthesis):
    """Exact inverse of `CQT(residual=True)`.

    The input is complex, (..., rows, frames), the output (..., time). Each row's weights are divided by the sum of
    squares over all rows (the dual frame). For modified spectra the result is a signal with similar spectra.

    Raises:
        ArgumentError: bins above fs/2, a hop above fs / width of the highest bin, a length that does not match the
            number of frames.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 5001)
        >>> chain = CQT(hop_length=48, fs=22_050, residual=True) | InverseCQT(hop_length=48, length=5001, fs=22_050)
        >>> bool((chain(x) - x).abs().max() < 1e-5)
        True
    """

    gamma = 0.0
    fs: float | None = sample_rate(default=None)


class InverseVQT(LogSynthesis):
    """Exact inverse of `VQT(residual=True)`; see `InverseCQT`.

    Raises:
        ArgumentError: bins above fs/2, a hop above fs / width of the highest bin, a length that does not match the
            number of frames.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 5001)
        >>> chain = VQT(hop_length=32, fs=22_050, residual=True) | InverseVQT(hop_length=32, length=5001, fs=22_050)
        >>> bool((chain(x) - x).abs().max() < 1e-5)
        True
    """

    fs: float | None = sample_rate(default=None)


Table = tuple[Tensor, Tensor, tuple[tuple[int, int], ...]]
"""Sources, their weights, and the ranges of targets that these are added to, one range after the other."""


def summed(values: Tensor, table: Table, size: int) -> Tensor:
    """Return (..., size) where each weighted source is added to its target."""
    sources, weights, ranges = table
    taken = values.index_select(-1, sources.to(values.device)).mul_(weights.to(values.device))
    found = values.new_zeros(*values.shape[:-1], size)
    for (first, end), part in zip(ranges, taken.split([end - first for first, end in ranges], dim=-1), strict=True):
        found[..., first:end] += part
    return found


def spectrum_of(x: Tensor, hop: int) -> Tensor:
    """Return `torch.fft.rfft(x)` of (..., frames x hop) samples, as transforms of `frames` and of `hop` values.

    One transform of all samples is several times slower: its steps lie too far apart for caches, and it runs on one
    thread. Bin a + frames b is the transform over q of e^(-2 pi i a q / samples) times that over p of sample hop p + q.
    """
    size, frames = x.shape[-1], x.shape[-1] // hop
    columns = torch.fft.rfft(x.unflatten(-1, (frames, hop)).transpose(-1, -2).contiguous())
    rows = torch.fft.fft(columns * turns(frames, hop, columns.dtype).to(x.device), dim=-2)
    # Row b begins at bin frames b; its second half are the conjugates of bins that lie as far from the spectrum's end.
    half = hop // 2
    mirrored = rows[..., hop - 1 - half :, 1 : (frames + 1) // 2].flip(-1, -2).conj()
    return torch.cat([rows[..., : half + 1, :], mirrored], dim=-1).flatten(-2)[..., : size // 2 + 1]


def samples_of(spectrum: Tensor, frames: int, hop: int) -> Tensor:
    """Return `torch.fft.irfft(spectrum, n=frames * hop)`, the steps of `spectrum_of` undone."""
    size = frames * hop
    whole = torch.cat([spectrum, spectrum[..., 1 : (size + 1) // 2].flip(-1).conj()], dim=-1)
    rows = torch.fft.ifft(whole.unflatten(-1, (hop, frames))[..., : frames // 2 + 1], dim=-2)
    columns = torch.fft.irfft(rows * turns(frames, hop, rows.dtype).conj().to(rows.device), n=frames)
    found: Tensor = columns.transpose(-1, -2).flatten(-2)
    return found


def turns(frames: int, hop: int, dtype: torch.dtype) -> Tensor:
    """Return e^(-2 pi i q a / (frames hop)), (hop, frames // 2 + 1)."""
    return _turns(frames, hop, dtype)


@lru_cache(maxsize=4)
def _turns(frames: int, hop: int, dtype: torch.dtype) -> Tensor:
    angles = np.outer(np.arange(hop), np.arange(frames // 2 + 1)) * (-2 * np.pi / (frames * hop))
    with torch.inference_mode(False):
        found: Tensor = torch.polar(torch.ones(angles.shape, dtype=torch.float64), torch.from_numpy(angles)).to(dtype)
    return found


def analysis_table(
    settings: tuple[float, int, int, float, str], rate: float, frames: int, hop: int, residual: bool, dtype: torch.dtype
) -> Table:
    """Return which bin of the spectrum is added to which of (rows x frames), and with what weight."""
    return _analysis_table(settings, rate, frames, hop, residual, dtype)


@lru_cache(maxsize=8)
def _analysis_table(
    settings: tuple[float, int, int, float, str], rate: float, frames: int, hop: int, residual: bool, dtype: torch.dtype
) -> Table:
    bins, places, weights = _placed(settings, rate, frames, hop, residual)
    return _table(bins, places, weights * (2 / hop), dtype)


def synthesis_table(
    settings: tuple[float, int, int, float, str], rate: float, frames: int, hop: int, dtype: torch.dtype
) -> Table:
    """Return which of (rows x frames) is added to which bin of the spectrum, with the dual frame's weights."""
    return _synthesis_table(settings, rate, frames, hop, dtype)


@lru_cache(maxsize=8)
def _synthesis_table(
    settings: tuple[float, int, int, float, str], rate: float, frames: int, hop: int, dtype: torch.dtype
) -> Table:
    bins, places, weights = _placed(settings, rate, frames, hop, True)
    squares = np.bincount(bins, weights**2, minlength=frames * hop // 2 + 1)
    return _table(places, bins, weights / squares[bins] * (hop / 2), dtype)


def _placed(
    settings: tuple[float, int, int, float, str], rate: float, frames: int, hop: int, residual: bool
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the bins of the spectrum that the rows hold, where each goes in (rows x frames), and their weights."""
    rows = LogBands(*settings).weights(rate, frames * hop, hop, residual)
    bins = np.concatenate([first + np.arange(len(row)) for first, row in rows])
    places = np.repeat(np.arange(len(rows)), [len(row) for _, row in rows]) * frames + bins % frames
    return bins, places, np.concatenate([row for _, row in rows])


def _table(sources: Numbers, targets: Numbers, weights: Numbers, dtype: torch.dtype) -> Table:
    """Return what `summed` reads: the first source of each target, then the second of those that have one, and so on.

    No two of a range have the same target, so that it is added at once; a weight of 0 stands where there is no source.
    """
    order = np.argsort(targets, kind="stable")
    sources, targets, weights = sources[order], targets[order], weights[order]
    at = np.arange(len(targets))
    nth = at - np.maximum.accumulate(np.where(np.diff(targets, prepend=-1) != 0, at, 0))
    ranges, taken, factors = [], [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for n in range(int(nth.max(initial=-1)) + 1):
        those = np.flatnonzero(nth == n)
        first, end = int(targets[those[0]]), int(targets[those[-1]]) + 1
        taken.append(np.zeros(end - first, dtype=np.int64))
        factors.append(np.zeros(end - first))
        taken[-1][targets[those] - first], factors[-1][targets[those] - first] = sources[those], weights[those]
        ranges.append((first, end))
    with torch.inference_mode(False):
        indices, scales = torch.from_numpy(np.concatenate(taken)), torch.from_numpy(np.concatenate(factors)).to(dtype)
    return indices, scales, tuple(ranges)


# As `torch.compiler.assume_constant_result` does, which imports the compiler: traced programs ask NumPy beforehand.
checked_rows._dynamo_marked_constant = True  # type: ignore[attr-defined]
turns._dynamo_marked_constant = True  # type: ignore[attr-defined]
analysis_table._dynamo_marked_constant = True  # type: ignore[attr-defined]
synthesis_table._dynamo_marked_constant = True  # type: ignore[attr-defined]
