"""The chains that are timed, as plain data, with coefficients from SciPy alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["API", "FIR", "IIR", "Chain", "Design"]

FS = 44_100


@dataclass(frozen=True)
class Design:
    """One filter: a SciPy design function's name and arguments.

    Attributes:
        design: "butter", "cheby1" or "firwin".
        cutoff: Hz.
        size: order, or number of taps.
        btype: which side passes.
        ripple: passband ripple of "cheby1", dB.
    """

    design: Literal["butter", "cheby1", "firwin"]
    cutoff: float
    size: int
    btype: Literal["lowpass", "highpass"] = "lowpass"
    ripple: float = 0.5

    def coefficients(self, output: Literal["ba", "sos"], fs: float) -> Any:
        """Return (b, a) or second-order sections."""
        from scipy import signal

        if self.design == "firwin":
            return signal.firwin(self.size, self.cutoff, fs=fs), np.ones(1)
        if self.design == "butter":
            return signal.butter(self.size, self.cutoff, self.btype, fs=fs, output=output)
        return signal.cheby1(self.size, self.ripple, self.cutoff, self.btype, fs=fs, output=output)

    def __str__(self) -> str:
        """Return the filter as a person writes it."""
        if self.design == "firwin":
            return f"DesignableFIR({self.cutoff:g}, {self.size} taps)"
        side = "Hi" if self.btype == "highpass" else "Lo"
        return f"{side}{'Butterworth' if self.design == 'butter' else 'Chebyshev1'}({self.cutoff:g}, order {self.size})"


@dataclass(frozen=True)
class Chain:
    """Filters in a row, all recursive or all finite."""

    filters: tuple[Design, ...]
    fs: int = FS

    def sos(self) -> npt.NDArray[np.float64] | None:
        """Return all sections, (sections, 6), or None for finite filters."""
        if self.filters[0].design == "firwin":
            return None
        return np.concatenate([each.coefficients("sos", self.fs) for each in self.filters])

    def taps(self) -> npt.NDArray[np.float64] | None:
        """Return all taps convolved, (n,), or None for recursive filters."""
        if self.filters[0].design != "firwin":
            return None
        taps = np.ones(1)
        for each in self.filters:
            taps = np.convolve(taps, each.coefficients("ba", self.fs)[0])
        return taps

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return everything a contender may want to know, fit for JSON."""
        filters = []
        for each in self.filters:
            b, a = each.coefficients("ba", self.fs)
            filters.append({**asdict(each), "b": b.tolist(), "a": a.tolist()})
        sos, taps = self.sos(), self.taps()
        return {
            "fs": self.fs,
            "device": device,
            "channels": channels,
            "filters": filters,
            "sos": None if sos is None else sos.tolist(),
            "taps": None if taps is None else taps.tolist(),
        }

    def __str__(self) -> str:
        """Return the chain as a person writes it."""
        return f"{' | '.join(map(str, self.filters))} at {self.fs} Hz"


IIR = Chain(
    (
        Design("butter", 1000, 2, "highpass"),
        Design("butter", 5000, 2),
        Design("cheby1", 1500, 2, "highpass"),
        Design("cheby1", 1800, 2),
    )
)
FIR = Chain(tuple(Design("firwin", cutoff, 101 + i) for i, cutoff in enumerate((1000, 5000, 1500, 1800, 1850))))
API = Chain(
    (
        *(Design("cheby1", cutoff, 2, "highpass") for cutoff in (20, 60, 65)),
        *(Design("butter", cutoff, 2) for cutoff in (5000, 4900, 4850)),
    )
)
