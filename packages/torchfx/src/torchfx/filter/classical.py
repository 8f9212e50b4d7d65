"""Base class of the classical recursive filters: cutoffs, band type, and the order from a specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import Self

from torchfx.checks import number_text, sample_rate
from torchfx.design.iir import BandType, Cutoff, check_edges
from torchfx.errors import ArgumentError
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import frequencies, named, number

__all__ = ["ClassicalFilter"]

Edges = float | Sequence[float]
PASSBAND, STOPBAND = named("passband", frequencies()), named("stopband", frequencies())
GPASS = named("gpass", number(low=0.0, open_low=True, unit="dB"))
GSTOP = named("gstop", number(low=0.0, open_low=True, unit="dB"))


class ClassicalFilter(RecursiveFilter):
    """A filter that is designed from an analogue prototype.

    A subclass declares its order, its levels and `fs`, and implements `design`. A subclass that assigns `btype` fixes
    it.
    """

    cutoff: Cutoff = frequencies(
        doc="-3 dB frequency, or a pair of them for a band; a tensor (...), (..., 2) for a band, is learned",
        learnable=True,
    )

    order_function: ClassVar[str] = ""
    """SciPy's function for the lowest order that meets a specification."""

    def check_parameters(self) -> None:
        """Raise if the number of cutoffs does not match the band type."""
        own: Any = self  # its subclasses declare or fix btype
        check_edges(own.cutoff, own.btype)

    @classmethod
    def from_specification(cls, passband: Edges, stopband: Edges, gpass: float, gstop: float, fs: float) -> Self:
        """Return the filter of lowest order that meets a specification, as SciPy's `buttord`, `cheb1ord` etc. find it.

        Args:
            passband: edge of the passband in Hz, or its two edges for a band-pass or band-stop.
            stopband: edge or edges of the stopband in Hz. The order of the edges determines the band type: a stopband
                above the passband gives a low-pass.
            gpass: maximum loss in the passband, dB, > 0.
            gstop: minimum attenuation in the stopband, dB, > gpass.
            fs: sample rate of the returned filter, Hz.

        Raises:
            ArgumentError: the edges form no valid band or not the band type of the class; the family has no formula for
                its order.

        Examples:
            >>> from torchfx.filter import Butterworth
            >>> Butterworth.from_specification(1000, 3000, gpass=1, gstop=40, fs=48_000).order
            5
        """
        family: Any = cls
        if not cls.order_function:
            raise ArgumentError(f"{cls.__name__} cannot be made from a specification: no formula gives its order")
        fs = sample_rate(fs)
        btype = _band_type(PASSBAND.check(passband, fs), STOPBAND.check(stopband, fs))
        fixed = btype if "btype" in cls.declarations else family.btype
        if btype != fixed:
            raise ArgumentError(f"passband and stopband must be those of a {fixed}, got those of a {btype}")
        gpass, gstop = GPASS.check(gpass, fs), GSTOP.check(gstop, fs)
        if gstop <= gpass:
            raise ArgumentError(f"gstop must exceed gpass = {number_text(gpass)} dB, got {number_text(gstop)}")
        from scipy import signal

        order, cutoff = getattr(signal, cls.order_function)(passband, stopband, gpass, gstop, fs=fs)
        values: dict[str, Any] = {"btype": btype, "ripple": gpass, "attenuation": gstop}
        declared = {name: value for name, value in values.items() if name in cls.declarations}
        found: Self = family(cutoff.tolist(), int(order), fs=fs, **declared)
        return found


def _band_type(passband: Any, stopband: Any) -> BandType:
    """Return the type of band that checked edges make."""
    edges = [each if isinstance(each, tuple) else (each,) for each in (passband, stopband)]
    match edges:
        case [(p,), (s,)] if p != s:
            return "lowpass" if p < s else "highpass"
        case [(p1, p2), (s1, s2)] if s1 < p1 and p2 < s2:
            return "bandpass"
        case [(p1, p2), (s1, s2)] if p1 < s1 and s2 < p2:
            return "bandstop"
    shown = " and ".join(PASSBAND.show(each) for each in (passband, stopband))
    raise ArgumentError(
        f"passband and stopband must be two different frequencies, or two pairs of which one lies inside the other, "
        f"got {shown}"
    )
