"""Harmonic-percussive source separation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx.core.processor import Processor
from torchfx.effect.overlap import added_frames, frames_of, transformed
from torchfx.errors import ArgumentError
from torchfx.functional.harmonic_percussive import along_both, share
from torchfx.functional.stretching import OVERLAP, overlapping_window
from torchfx.parameters import count, number
from torchfx.pieces import PIECE, Pieces
from torchfx.tensors import cut, joined

__all__ = ["HarmonicPart", "PercussivePart"]


class MaskedPart(Processor):
    """Base class: the part of a signal that a mask of `torchfx.functional.hpss` selects."""

    is_harmonic: ClassVar[bool]
    kernel_size: int = count(default=31, draws=(3, 9), doc="frames, and bins, of which medians are taken; odd")
    power: float = number(
        default=2.0, low=0.0, open_low=True, draws=(1.0, 3.0), learnable=False, doc="how sharply parts are separated"
    )
    margin: float = number(
        default=1.0, low=1.0, draws=(1.0, 3.0), learnable=False, doc="by how much a median must exceed the other"
    )
    n_fft: int = count(default=2048, low=16, high=65_536, draws=(256, 256), doc="samples in a window, a multiple of 4")

    def check_parameters(self) -> None:
        """Raise where a parameter cannot be used."""
        if self.kernel_size % 2 == 0:
            raise ArgumentError(f"kernel_size must be odd, got {self.kernel_size}")
        if self.n_fft % OVERLAP:
            raise ArgumentError(f"n_fft must be a multiple of {OVERLAP}, got {self.n_fft}")

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, since its medians span later frames"

    def forward(self, x: Tensor) -> Tensor:
        """Return the part; frame f is centred at sample f * hop."""
        hop, time = self.n_fft // OVERLAP, x.shape[-1]
        if x.numel() == 0:
            return x
        count = time // hop + 1
        y = added_frames(self._masked(pad(x, (2 * hop, (count + 1) * hop - time))))
        return (cut(y, 2 * hop, time) / self._weights(x, 0, time, count)).to(x.dtype)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the part; medians need half a kernel of neighbouring frames on each side."""
        hop, beside = self.n_fft // OVERLAP, self.kernel_size // 2
        count, at_once = x.time // hop + 1, max(1, PIECE // hop, 4 * beside)
        behind = torch.zeros(*x.shape[:-1], (OVERLAP - 1) * hop, dtype=torch.float64)
        for first in range(0, count, at_once):
            stop = min(count, first + at_once)
            begin, end = max(0, first - beside), min(count, stop + beside)
            heard = x.read((begin - 2) * hop, (end + 1) * hop)
            y = added_frames(self._masked(heard)[..., first - begin : stop - begin, :])
            y = y + pad(behind, (0, y.shape[-1] - behind.shape[-1]))
            done = y.shape[-1] if stop == count else (stop - first) * hop
            y, behind = y[..., :done], y[..., done:]
            place = (first - 2) * hop
            y = y[..., max(0, -place) : x.time - place]
            yield (y / self._weights(y, max(0, first - 2), y.shape[-1], count)).to(heard.dtype)

    def _masked(self, x: Tensor) -> Tensor:
        """Return windowed frames (..., frames, n_fft), float64, of the part of a signal's whole number of hops.

        Shares are found in the samples' precision. Spectra in float32 would be off by a part of the signal's peak,
        which may be far above the part's.
        """
        window = overlapping_window(self.n_fft, x.device)
        spectra = transformed(torch.fft.rfft, frames_of(x.double(), self.n_fft // OVERLAP) * window)
        medians = along_both(spectra.abs().mT.to(x.dtype), self.kernel_size)
        own, other = medians if self.is_harmonic else medians[::-1]
        shares = share(own, other, self.power, self.margin).mT.contiguous()  # `torch.export` multiplies no other layout
        return transformed(torch.fft.irfft, shares * spectra) * window

    def _weights(self, like: Tensor, first: int, length: int, count: int) -> Tensor:
        """Return what the squares of the windows of `count` frames add up to, from a hop on: 1 but at the ends."""
        rows = torch.arange(first, first - (-length // (self.n_fft // OVERLAP)), device=like.device)
        frames = rows[:, None] + 2 - torch.arange(OVERLAP, device=like.device)
        there = ((frames >= 0) & (frames < count)).double()
        squares = overlapping_window(self.n_fft, like.device).square()
        return joined(there @ squares.unflatten(-1, (OVERLAP, -1)), length)


class HarmonicPart(MaskedPart):
    """Keep steady sounds, such as held notes, and attenuate attacks and drums.

    In a spectrogram with a hop of n_fft / 4 samples, steady partials are lines along time and attacks are lines along
    frequency; median filters along both axes separate them (formulas and source: `torchfx.functional.hpss`). Equals
    `librosa.effects.harmonic`. With a margin of 1, `HarmonicPart` and `PercussivePart` add up to the signal. Streams
    are not supported: a frame's medians need `kernel_size // 2` later frames.

    Examples:
        >>> import torch
        >>> tone = torch.sin(0.3 * torch.arange(20_000))
        >>> click = torch.zeros(20_000)
        >>> click[10_000] = 10.0
        >>> found = HarmonicPart(n_fft=512)(tone + click)
        >>> bool(found[10_000] < 2), bool((found - tone)[9000:9500].abs().max() < 0.01)
        (True, True)
    """

    is_harmonic = True


class PercussivePart(MaskedPart):
    """Keep attacks and drums, and attenuate steady sounds; see `HarmonicPart`.

    Examples:
        >>> import torch
        >>> tone = torch.sin(0.3 * torch.arange(20_000))
        >>> click = torch.zeros(20_000)
        >>> click[10_000] = 10.0
        >>> found = PercussivePart(n_fft=512)(tone + click)
        >>> bool(found[10_000] > 9), bool(found[9000:9500].abs().max() < 0.01)
        (True, True)
    """

    is_harmonic = False
