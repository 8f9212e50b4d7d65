"""Recursive filters with given coefficients: second-order sections, or a transfer function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchfx.design.poles import all_pole_sections, largest_radius
from torchfx.errors import ArgumentError
from torchfx.filter.filter import Filter
from torchfx.filter.recursive import transfer_function
from torchfx.parameters import denominator, sections, taps
from torchfx.plan import LTI
from torchfx.tensors import broadcast_shapes, is_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    Coefficients = Sequence[Any] | npt.NDArray[np.floating[Any]] | Tensor

__all__ = ["IIR", "SOS"]


class SOS(Filter):
    """A cascade of given second-order sections, as SciPy's designs return with `output="sos"`.

    A tensor that requires a gradient is learned and is used without a copy. All other coefficients are stored as
    float64 buffers in the state dict. Leading dimensions broadcast with the signal's: sections (batch, 1, n, 6) give
    each example of a signal (batch, channels, time) its own filter.

    Raises:
        ArgumentError: a shape other than (..., sections, 6), a0 = 0, numbers that are not finite, or an unstable
            section.

    Examples:
        >>> import torch
        >>> from scipy import signal
        >>> lowpass = SOS(signal.ellip(6, 0.5, 60, 1000, fs=48_000, output="sos"))
        >>> lowpass
        SOS(3 sections)
        >>> (lowpass | SOS([[0.5, 0.5, 0, 1, 0, 0]])).plan(48_000)
        plan at 48000 Hz: 2 modules -> 1 operator call
          1. torchfx_ext::sos_forward  4 sections
             SOS(3 sections)
             SOS(1 section)
    """

    sos: Coefficients = sections(doc="rows b0 b1 b2 a0 a1 a2")

    def lti(self, rate: Any) -> LTI:
        """Return the sections, which do not depend on the rate."""
        return LTI(sos=self._float64())

    @property
    def b(self) -> Tensor:
        """Numerator of the whole transfer function, float64, (..., order + 1)."""
        return transfer_function(self._float64())[0]

    @property
    def a(self) -> Tensor:
        """Denominator of the whole transfer function, float64, (..., order + 1)."""
        return transfer_function(self._float64())[1]

    def extra_repr(self) -> str:
        """Return the number of sections."""
        return self.declarations["sos"].show(self.sos)

    def _float64(self) -> Tensor:
        sos: Any = self.sos
        found: Tensor = sos.double()
        return found


class IIR(Filter):
    """A filter with the transfer function (b0 + b1/z + ...) / (a0 + a1/z + ...), as `scipy.signal.lfilter(b, a, x)`.

    A filter up to order 2 runs as one section. For higher orders, `b` runs as FIR taps, followed by sections made from
    the roots of `a`. Rounding errors in `a` move poles that lie close together; `SOS` represents such filters more
    exactly.

    A tensor that requires a gradient is learned and is used without a copy: `b` of any order, `a` up to order 2.
    Leading dimensions broadcast with each other and with the signal's.

    Raises:
        ArgumentError: a0 = 0, a pole on or outside the unit circle, numbers that are not finite, an `a` of order 3 or
            more that requires a gradient.

    Examples:
        >>> import torch
        >>> smooth = IIR(b=[0.25], a=[1, -0.75])
        >>> smooth(torch.tensor([1.0, 0.0, 0.0]))
        tensor([0.2500, 0.1875, 0.1406])
        >>> IIR([1], [1, -1])
        Traceback (most recent call last):
        torchfx.errors.ArgumentError: a must have its poles inside the unit circle, got one at radius 1
    """

    b: Coefficients = taps(doc="numerator")
    a: Coefficients = denominator(doc="denominator")

    def check_parameters(self) -> None:
        """Raise if the filter is unstable, or if an `a` of order 3 or more requires a gradient."""
        a: Any = self.a
        b: Any = self.b
        broadcast_shapes(b=b.shape[:-1], a=a.shape[:-1])
        if a.requires_grad and a.shape[-1] > 3:
            raise ArgumentError(
                f"a can be learned up to order 2, got order {a.shape[-1] - 1}; learn the sections of SOS instead"
            )
        if not is_readable(a):
            return
        if not bool((a[..., 0] != 0).all()):
            raise ArgumentError("a must not begin with zero, got a[0] = 0")
        radius = largest_radius(a.detach().double())
        if not radius < 1:
            raise ArgumentError(f"a must have its poles inside the unit circle, got one at radius {radius:.9g}")

    def lti(self, rate: Any) -> LTI:
        """Return one section, or FIR taps and all-pole sections."""
        b: Any = self.b
        a: Any = self.a
        b, a = b.double(), a.double()
        if a.shape[-1] == 1:
            return LTI(taps=b / a)
        if a.shape[-1] > 3:
            return LTI(taps=b / a[..., :1], sos=all_pole_sections(a))
        if b.shape[-1] > 3:
            return LTI(taps=b, sos=_section(b.new_ones(1), a))
        return LTI(sos=_section(b, a))

    def extra_repr(self) -> str:
        """Return the order."""
        b: Any = self.b
        a: Any = self.a
        return f"order {max(b.shape[-1], a.shape[-1]) - 1}"


def _section(b: Tensor, a: Tensor) -> Tensor:
    """Return polynomials of at most three coefficients as a section, (..., 1, 6)."""
    b, a = (torch.nn.functional.pad(each, (0, 3 - each.shape[-1])) for each in (b, a))
    leading = torch.broadcast_shapes(b.shape[:-1], a.shape[:-1])
    return torch.cat([b.expand(*leading, 3), a.expand(*leading, 3)], dim=-1).unsqueeze(-2)
