"""The operators' Python entry points; callers look them up here at call time, so a wrapper put in place is called.

All take float32 or float64 signals (..., time) on any device, compute in float64, and return the output and the
state after it (float64, SciPy's zi layout), from which the next block continues. Coefficients may have leading
dimensions, which broadcast with the signal's: each example, channel or band then has a filter of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from torch import Tensor

from torchfx._ops.operator import Row, register

__all__ = [
    "PARALLEL_SCAN_THRESHOLD",
    "biquad_forward",
    "fir_forward",
    "lti_forward",
    "operators",
    "parallel_iir_forward",
    "rows",
]

operators: Final[dict[str, Callable[..., Any]]] = {}
"""The declared operators by name; they take all arguments by position."""

rows: Final[list[Row]] = []
"""Which backend serves which operator, for `torchfx info`."""

for _module in iter_modules(__path__):
    if _module.ispkg:
        rows.extend(register(import_module(f"{__name__}.{_module.name}"), operators))

PARALLEL_SCAN_THRESHOLD = 1024
"""Signals of at least this many samples are split along time and carried by a scan; read at every call."""

_sos_forward, _biquad_forward = operators["sos_forward"], operators["biquad_forward"]
_fir_forward, _lti_forward = operators["fir_forward"], operators["lti_forward"]


def parallel_iir_forward(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Filter a signal through a whole cascade of second-order sections: one call at any depth.

    Args:
        x: float32 or float64, (..., time).
        sos: float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2; leading dimensions broadcast with the signal's.
        state: float64, (sections, ..., 2), SciPy's `sosfilt` zi; None starts from rest.
        threshold: signals of at least this many samples may be split along time;
            None means `PARALLEL_SCAN_THRESHOLD`.
        out: output and state after to write into, instead of new tensors.

    Returns:
        The output like x (with the sections' leading dimensions), and the state after it like `state`.

    Raises:
        ArgumentError: a wrong shape or device, a NaN or infinite coefficient, an unstable section.
        ArgumentTypeError: a wrong dtype.

    Examples:
        >>> import torch
        >>> sos = torch.tensor([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
        >>> y, state = parallel_iir_forward(torch.tensor([1.0, 0.0, 2.0]), sos)
        >>> y
        tensor([0.5000, 0.5000, 1.0000])
    """
    found: tuple[Tensor, Tensor] = _sos_forward(
        x, sos, state, PARALLEL_SCAN_THRESHOLD if threshold is None else threshold, out=out
    )
    return found


def biquad_forward(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int | None = None
) -> tuple[Tensor, Tensor]:
    """Filter a signal through one second-order section.

    Args:
        x: float32 or float64, (..., time).
        b: float64, (..., 3), numerator.
        a: float64, (..., 3), denominator.
        state: float64, (..., 2), SciPy's `lfilter` zi; None starts from rest.
        threshold: as in `parallel_iir_forward`.

    Returns:
        The output like x, and the state after it like `state`.
    """
    found: tuple[Tensor, Tensor] = _biquad_forward(
        x, b, a, state, PARALLEL_SCAN_THRESHOLD if threshold is None else threshold
    )
    return found


def fir_forward(
    x: Tensor, taps: Tensor, state: Tensor | None = None, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Filter a signal through a finite impulse response.

    Args:
        x: float32 or float64, (..., time).
        taps: float64, (..., n); leading dimensions broadcast with the signal's.
        state: float64, (..., n - 1), SciPy's `lfilter` zi; None starts from rest.
        out: output and state after to write into, instead of new tensors.

    Returns:
        The output like x, and the state after it like `state`.
    """
    found: tuple[Tensor, Tensor] = _fir_forward(x, taps, state, out=out)
    return found


def lti_forward(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Filter a signal through a finite impulse response and then a cascade, in float64 between the two.

    Args:
        x: float32 or float64, (..., time).
        taps: float64, (..., n).
        sos: float64, (..., sections, 6).
        taps_state: float64, (..., n - 1), the response's state; None starts from rest.
        state: float64, (sections, ..., 2), the cascade's state; None starts from rest.
        threshold: as in `parallel_iir_forward`.

    Returns:
        The output like x, the response's state after it, the cascade's state after it.
    """
    found: tuple[Tensor, Tensor, Tensor] = _lti_forward(
        x, taps, sos, taps_state, state, PARALLEL_SCAN_THRESHOLD if threshold is None else threshold
    )
    return found
