"""FIR filters: with given taps, or designed by the window method."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchfx.checks import callers_level, number_text
from torchfx.design.firwin import Window, fir_taps
from torchfx.design.recording import recorded
from torchfx.filter.filter import Filter
from torchfx.parameters import count, frequencies, pass_zero, sample_rate, taps, window
from torchfx.plan import LTI

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Taps = Sequence[float] | npt.NDArray[np.floating[Any]] | Tensor

__all__ = ["FIR", "DesignableFIR"]


class FiniteResponse(Filter):
    """Base class of FIR filters; the arithmetic is float64."""

    @abstractmethod
    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz): float64, (..., n)."""

    def lti(self, rate: Any) -> LTI:
        """Return the filter as FIR taps."""
        return LTI(taps=recorded(self.design, rate))

    @property
    def a(self) -> Tensor:
        """The denominator of the transfer function, which is 1: float64, (1,)."""
        return torch.ones(1, dtype=torch.float64, device=self.device or "cpu")


class DesignedResponse(FiniteResponse):
    """Base class of FIR filters with designed taps."""

    @property
    def b(self) -> Tensor:
        """The taps, float64, (..., n)."""
        return self.design(self._own_rate()).to(self.device or "cpu").clone()


class FIR(FiniteResponse):
    """An FIR filter with given taps.

    A tensor that requires a gradient is learned and is used without a copy. All other taps are stored as a float64
    buffer in the state dict.

    Examples:
        >>> import torch
        >>> FIR([0.5, 0.5])(torch.tensor([1.0, 0.0, 2.0]))
        tensor([0.5000, 0.5000, 1.0000])
    """

    b: Taps = taps()

    @property
    def taps(self) -> Tensor:
        """The taps, (..., n)."""
        return self.b  # type: ignore[return-value]

    def design(self, rate: Any) -> Tensor:
        """Return the taps, which do not depend on the rate."""
        return self.taps.double()

    def extra_repr(self) -> str:
        """Return the number of taps."""
        return self.declarations["b"].show(self.taps)


class DesignableFIR(DesignedResponse):
    """A linear-phase FIR filter designed by the window method; its delay is (num_taps - 1) / 2 samples.

    Equals `scipy.signal.firwin(num_taps, cutoff, window=window, pass_zero=pass_zero, fs=fs)`.

    Examples:
        >>> DesignableFIR(cutoff=1000, num_taps=101, fs=44_100).b.shape
        torch.Size([101])
    """

    cutoff: float | Sequence[float] = frequencies(doc="-6 dB frequencies, the edges of the bands")
    num_taps: int = count(doc="length; odd when fs/2 must pass", draws=(3, 200))
    fs: float | None = sample_rate(default=None)
    window: Window = window(default="hamming")
    pass_zero: bool | str = pass_zero(default=True, doc="whether 0 Hz passes (lowpass, bandstop) or not")

    def check_parameters(self) -> None:
        """Raise if the length does not suit the bands, or SciPy does not know the window.

        Warn if both look exchanged: a cutoff in Hz below an even number of taps.
        """
        highest: Any = self.cutoff[-1] if isinstance(self.cutoff, tuple) else self.cutoff
        self.design(self.fs or 4 * highest)
        if self.cutoff == highest < self.num_taps and self.num_taps % 2 == 0 and float(highest).is_integer():
            warnings.warn(
                f"{self._get_name()} takes the cutoff before the number of taps, other than scipy.signal.firwin, got "
                f"cutoff={number_text(highest)} and num_taps={self.num_taps}: were they exchanged? An odd number of "
                f"taps is not warned of",
                UserWarning,
                stacklevel=callers_level(),
            )

    def design(self, rate: Any) -> Tensor:
        """Return the taps at a sample rate (Hz)."""
        return fir_taps(self.cutoff, self.num_taps, rate, self.window, self.pass_zero)
