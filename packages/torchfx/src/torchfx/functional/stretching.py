"""Slower or faster at the same pitch, by a phase vocoder or by WSOLA."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops
from torchfx.checks import finite_number, number_text, whole_number
from torchfx.design.operator import design_operator
from torchfx.errors import ArgumentError
from torchfx.pieces import PIECE, Pieces
from torchfx.tensors import check_signal, cut, settings_on

__all__ = [
    "METHODS",
    "OVERLAP",
    "overlapping_window",
    "stretched",
    "stretched_length",
    "stretched_pieces",
    "time_stretch",
    "vocoder_window",
]

METHODS = ("phase_vocoder", "wsola")
OVERLAP = 4  # windows around each sample


def time_stretch(x: Tensor, rate: float, method: str = "phase_vocoder", n_fft: int = 4096) -> Tensor:
    """Change a signal's speed and keep its pitch.

    The phase vocoder keeps tonal sounds steady: partials keep frequency and amplitude. Its phases are locked around the
    peaks of the spectrum, and start again after silence. WSOLA pastes pieces where they fit best, the same for
    all channels. It keeps the shape of speech and of single notes; sounds of several notes become rough.

    Args:
        x: float32 or float64, (..., time); for WSOLA (..., channels, time).
        rate: how many times as fast, > 0; 2 halves the length.
        method: "phase_vocoder" or "wsola".
        n_fft: samples in a window, a power of two >= 256. Partials less than 4 fs / n_fft apart are not separated: at
            44.1 kHz, 4096 resolve thirds from 130 Hz on. Fewer keep attacks shorter.

    Returns:
        Like x, (..., round(time / rate)), at least one sample.

    Raises:
        ArgumentError: an argument out of range.

    Sources: J. Laroche, M. Dolson, Improved Phase Vocoder Time-Scale Modification of Audio, IEEE Trans. Speech and
    Audio Processing 7 (3), 1999. W. Verhelst, M. Roelands, An Overlap-Add Technique Based on Waveform Similarity
    (WSOLA) for High Quality Time-Scale Modification of Speech, ICASSP 1993.

    Examples:
        >>> import torch
        >>> time_stretch(torch.randn(2, 3000), 1.5).shape
        torch.Size([2, 2000])
    """
    check_signal(x)
    rate = finite_number("rate", rate)
    if rate <= 0:
        raise ArgumentError(f"rate must lie in (0, inf), got {number_text(rate)}")
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    n_fft = whole_number("n_fft", n_fft, 256)
    if n_fft & (n_fft - 1):
        raise ArgumentError(f"n_fft must be a power of two, got {n_fft}")
    return stretched(x, rate, method, n_fft, stretched_length(x.shape[-1], rate))


def stretched_length(time: int, rate: float) -> int:
    """Return how many samples a signal has that is `rate` times as fast: at least one."""
    found = round(time / rate)
    return found if found > 1 else 1  # `max` would stay in all that `torch.export` computes with lengths


def stretched(x: Tensor, rate: float, method: str, n_fft: int, length: int) -> Tensor:
    """Return the first `length` samples of a stretched signal, which is silent after its end."""
    if x.numel() == 0:
        return x.new_zeros(*x.shape[:-1], length)
    return (_phase_vocoder if method == "phase_vocoder" else _wsola)(x, rate, n_fft, length)


def stretched_pieces(x: Pieces, rate: float, method: str, n_fft: int, length: int) -> Iterator[Tensor]:
    """Yield the first `length` samples of a stretched signal (channels, time)."""
    return (_vocoder_pieces if method == "phase_vocoder" else _wsola_pieces)(x, rate, n_fft, length)


def overlapping_window(n_fft: int, device: torch.device) -> Tensor:
    """Return a Hann window, scaled so that the squares of windows n_fft / OVERLAP samples apart add up to 1."""
    return settings_on(_hann(n_fft), device) * math.sqrt(2 / 3)


def vocoder_window(n_fft: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return `overlapping_window`, and what its squares add up to in an output's first samples, which lack a frame."""
    window = overlapping_window(n_fft, device)
    return window, 1 - window[-(n_fft // OVERLAP) :].square()


@design_operator("periodic_hann(int length) -> Tensor", shape=lambda length: (length,))
@lru_cache  # a stream's blocks ask for it again and again
def _hann(length: int) -> npt.NDArray[np.float64]:
    return np.hanning(length + 1)[:-1]


def _phase_vocoder(x: Tensor, rate: float, n_fft: int, length: int) -> Tensor:
    hop = n_fft // OVERLAP
    window, missing = vocoder_window(n_fft, x.device)
    y, _ = _ops.phase_vocoder_forward(x, window, None, rate, hop, 0, 0, -(-length // hop) + 2)
    head, rest = y[..., n_fft // 2 : n_fft // 2 + hop], y[..., n_fft // 2 + hop :]
    return cut(torch.cat([(head / missing).to(x.dtype), rest], dim=-1), 0, length)


def _vocoder_pieces(x: Pieces, rate: float, n_fft: int, length: int) -> Iterator[Tensor]:
    """Yield what `_phase_vocoder` returns; frames overlap in double precision, wherever a piece ends."""
    hop, count = n_fft // OVERLAP, -(-length // (n_fft // OVERLAP)) + 2
    window, missing = vocoder_window(n_fft, torch.device("cpu"))
    state, tail = None, torch.zeros(*x.shape[:-1], n_fft - hop, dtype=torch.float64)
    at_once = max(OVERLAP, PIECE // hop)
    for first in range(0, count, at_once):
        frames = min(at_once, count - first)
        begin, end = (math.floor(u * hop * rate + 0.5) for u in (first, first + frames - 1))
        begin -= n_fft // 2 + hop
        heard = x.read(begin, end + n_fft // 2)
        y, state = _ops.phase_vocoder_forward(heard.double(), window, state, rate, hop, first, -begin, frames)
        y = y + pad(tail, (0, frames * hop))
        place = first * hop - n_fft // 2
        y, tail = y[..., max(0, -place) : min(frames * hop, length - place)], y[..., frames * hop :]
        if first == 0:
            y = torch.cat([y[..., :hop] / missing[: y.shape[-1]], y[..., hop:]], dim=-1)
        yield y.to(heard.dtype)


def _wsola(x: Tensor, rate: float, n_fft: int, length: int) -> Tensor:
    """Lay down windows half their length apart, each from where the signal continues most like the one before.

    Window u is read around u hop rate, up to a quarter of a window before or after: where its first half correlates
    best, relative to its power, with what followed the window before.
    """
    hop, reach = n_fft // 2, n_fft // 4
    window = settings_on(_hann(n_fft), x.device)
    centres = _centres(rate, hop, 0, -(-length // hop) + 1)
    signal = pad(x.double(), (hop + reach, max(0, centres[-1] + n_fft + reach + hop - x.shape[-1])))
    frames, _ = _alike(signal if x.dim() > 1 else signal[None], -hop - reach, centres, None, n_fft)
    halves = (frames * window).unflatten(-1, (2, hop))
    y = pad(halves[..., 0, :], (0, 0, 0, 1)) + pad(halves[..., 1, :], (0, 0, 1, 0))
    y = y.flatten(-2)[..., hop : hop + length]
    return y.reshape(*x.shape[:-1], length).to(x.dtype)


def _wsola_pieces(x: Pieces, rate: float, n_fft: int, length: int) -> Iterator[Tensor]:
    """Yield what `_wsola` returns, of a signal (channels, time)."""
    hop, reach = n_fft // 2, n_fft // 4
    window = settings_on(_hann(n_fft), torch.device("cpu"))
    count, at_once = -(-length // hop) + 1, max(1, PIECE // hop)
    before, behind = None, torch.zeros(*x.shape[:-1], hop, dtype=torch.float64)
    for first in range(0, count, at_once):
        centres = _centres(rate, hop, first, min(at_once, count - first))
        begin = min(centres[0], centres[0] if before is None else before[0]) - hop - reach
        heard = x.read(begin, centres[-1] + n_fft + reach + hop)
        frames, before = _alike(heard.double(), begin, centres, before, n_fft)
        halves = (frames * window).unflatten(-1, (2, hop))
        y = halves[..., 0, :] + torch.cat([behind[..., None, :], halves[..., :-1, 1, :]], dim=-2)
        behind, place = halves[..., -1, 1, :], first * hop - hop
        yield y.flatten(-2)[..., max(0, -place) : length - place].to(heard.dtype)


def _centres(rate: float, hop: int, first: int, count: int) -> list[int]:
    """Return around where in the signal the windows from `first` on are looked for."""
    return [math.floor(u * hop * rate + 0.5) for u in range(first, first + count)]


def _alike(
    channels: Tensor, origin: int, centres: list[int], before: tuple[int, Tensor] | None, n_fft: int
) -> tuple[Tensor, tuple[int, Tensor]]:
    """Return windows (..., channels, windows, n_fft) that go on like each other, and where the last one was found.

    Args:
        channels: the signal (..., channels, time) from its sample `origin` on.
        origin: that sample.
        centres: where they are looked for.
        before: the centre of the window before the first one, and its shift (...); None: the first one is unshifted.
        n_fft: samples in a window.
    """
    hop, reach = n_fft // 2, n_fft // 4
    offsets = torch.arange(n_fft, device=channels.device)
    frames = []
    for centre in centres:
        if before is None:
            shift = torch.zeros(channels.shape[:-2], dtype=torch.int64, device=channels.device)
            frames.append(channels[..., centre - hop - origin : centre + hop - origin])
        else:
            # What followed the window before, and the stretch where the next one may begin: `hop` samples are compared.
            before_centre, shift = before
            follows = _from(channels, before_centre + shift - origin, offsets[:hop])
            searched = channels[..., centre - hop - reach - origin : centre + reach - origin]
            spectra = torch.fft.rfft(searched) * torch.fft.rfft(follows, n_fft).conj()
            likeness = torch.fft.irfft(spectra, n_fft)[..., : 2 * reach + 1].sum(-2)
            power = pad(searched.square().sum(-2).cumsum(-1), (1, 0))
            power = power[..., hop:] - power[..., : 2 * reach + 1]
            shift = (likeness / (power + 1e-9 * power.amax(-1, keepdim=True) + 1e-300).sqrt()).argmax(-1) - reach
            frames.append(_from(channels, centre - hop + shift - origin, offsets))
        before = centre, shift
    assert before is not None
    return torch.stack(frames, dim=-2), before


def _from(channels: Tensor, start: Tensor, offsets: Tensor) -> Tensor:
    """Return what begins there: channels (..., channels, time), start (...)."""
    at = (start[..., None, None] + offsets).expand(*channels.shape[:-1], len(offsets))
    return channels.gather(-1, at)
