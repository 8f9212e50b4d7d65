"""FIR filters designed from a specification of pass bands, stop bands and transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torchfx.design.fir_bands import frequency_sampled_taps, is_whole_list, least_squares_taps, remez_taps
from torchfx.design.firwin import Window, kaiser_taps, minimum_phase_taps
from torchfx.filter.fir import DesignableFIR, DesignedResponse
from torchfx.parameters import count, frequencies, number, pass_zero, per_band, sample_rate, window

__all__ = ["FrequencySampledFIR", "Kaiser", "LeastSquaresFIR", "MinimumPhaseFIR", "Remez"]


class MinimumPhaseFIR(DesignableFIR):
    """Minimum-phase filter with the magnitude response of a `DesignableFIR`: the least delay for that magnitude.

    Equals `scipy.signal.minimum_phase(np.convolve(b, b))` for b from `scipy.signal.firwin`.

    Examples:
        >>> b = MinimumPhaseFIR(1000, num_taps=101, fs=44_100).b
        >>> b.shape, int(b.abs().argmax()) < 50
        (torch.Size([101]), True)
    """

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return minimum_phase_taps(self.cutoff, self.num_taps, rate, self.window, self.pass_zero)


class Kaiser(DesignedResponse):
    """The shortest linear-phase Kaiser-window FIR filter that meets a specification; its delay is (n - 1) / 2 samples.

    Equals `scipy.signal.firwin` with the window and the number of taps (rounded up to odd) from
    `scipy.signal.kaiserord`.

    Examples:
        >>> Kaiser(1000, transition=200, attenuation_db=80, fs=44_100).b.shape
        torch.Size([1109])
    """

    cutoff: float | Sequence[float] = frequencies(doc="middles of the transitions, -6 dB")
    transition: float = number(
        default=500.0, doc="width of the transitions", low=0.0, open_low=True, unit="Hz", draws=(300.0, 5000.0),
        learnable=False,
    )  # fmt: skip
    attenuation_db: float = number(
        default=80.0, doc="of the stop band", low=8.0, unit="dB", draws=(20.0, 120.0), learnable=False
    )
    fs: float | None = sample_rate(default=None)
    pass_zero: bool | str = pass_zero(default=True, doc="whether 0 Hz passes (lowpass, bandstop) or not")

    def check_parameters(self) -> None:
        """Raise if the cutoffs do not match the band type, or the filter would be too long."""
        self.design(self.fs or 4 * _highest(self.cutoff))

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return kaiser_taps(self.cutoff, self.transition, self.attenuation_db, rate, self.pass_zero)


class FrequencySampledFIR(DesignedResponse):
    """A linear-phase FIR filter whose gain is interpolated linearly between given points.

    Equals `scipy.signal.firwin2(num_taps, [0, *frequencies, fs / 2], gains, window=window, fs=fs)`. `frequencies` may
    include 0 and fs / 2, as in SciPy.

    Examples:
        >>> FrequencySampledFIR([1000, 4000], gains=[1, 1, 0.25, 0], num_taps=64, fs=44_100).b.shape
        torch.Size([64])
    """

    frequencies: float | Sequence[float] = frequencies(
        ends=True,
        doc="frequencies of the gains, without 0 Hz and fs/2; or with both, as SciPy takes them",
    )
    gains: Sequence[float] = per_band(
        number(doc="linear, at 0 Hz, at each frequency and at fs/2", low=0.0, draws=(0.0, 1.0), learnable=False)
    )
    num_taps: int = count(default=101, doc="odd unless the last gain is 0", draws=(3, 200))
    fs: float | None = sample_rate(default=None)
    window: Window = window(default="hamming")

    def check_parameters(self) -> None:
        """Raise if gains, frequencies and length are inconsistent."""
        self.design(self.fs or _likely_rate(self.frequencies))

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return frequency_sampled_taps(self.frequencies, self.gains, self.num_taps, rate, self.window)


class Bands(DesignedResponse):
    """Base class: bands of constant gain with transitions between them. Subclasses minimize different errors."""

    edges: Sequence[float] = frequencies(
        ends=True, doc="where each transition begins and ends; or where each band does, as SciPy takes it", drawn=4
    )
    gains: Sequence[float] = per_band(number(doc="linear, of each band", low=0.0, draws=(0.0, 1.0), learnable=False))
    num_taps: int = count(default=101, doc="odd where fs/2 passes", draws=(21, 120))
    weights: float | Sequence[float] = per_band(
        number(doc="how much a band's error counts", low=0.0, open_low=True, draws=(1.0, 10.0), learnable=False),
        default=1.0,
    )
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if edges, gains, weights and length are inconsistent."""
        self.design(self.fs or _likely_rate(self.edges))


class LeastSquaresFIR(Bands):
    """The linear-phase FIR filter with the least squared error; its delay is (num_taps - 1) / 2 samples.

    Equals `scipy.signal.firls(num_taps, [0, *edges, fs / 2], ..., weight=weights, fs=fs)`. As in SciPy, `edges` may
    list both edges of each band, with one gain for each band or for each edge.

    Examples:
        >>> LeastSquaresFIR([3000, 4000], gains=[1, 0], fs=16_000).b.shape  # low-pass
        torch.Size([101])
    """

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return least_squares_taps(self.edges, self.gains, self.num_taps, rate, self.weights)


class Remez(Bands):
    """The linear-phase FIR filter with the smallest maximum error (Parks-McClellan): an equiripple filter.

    Equals `scipy.signal.remez(num_taps, [0, *edges, fs / 2], gains, weight=weights, fs=fs)`. As in SciPy, `edges` may
    list both edges of each band.

    Examples:
        >>> Remez([3000, 4000], gains=[1, 0], weights=[1, 10], fs=16_000).b.shape
        torch.Size([101])
    """

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return remez_taps(self.edges, self.gains, self.num_taps, rate, self.weights)


def _likely_rate(frequencies: float | Sequence[float]) -> float:
    """Return a sample rate that frequencies fit: a whole list ends at half of it."""
    return (2 if is_whole_list(frequencies) else 4) * _highest(frequencies)


def _highest(frequencies: float | Sequence[float]) -> float:
    return frequencies[-1] if isinstance(frequencies, Sequence) else frequencies
