"""The operators' Python entry points; callers look them up here at call time, so a wrapper put in place is called.

All take float32 or float64 signals (..., time) on any device, compute in float64, and return the output and the
state after it (float64, SciPy's zi layout), from which the next block continues.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.biquad import operator as _biquad
from torchfx._ops.fir import autograd as _fir
from torchfx._ops.fir import vmap as _fir_vmap  # noqa: F401
from torchfx._ops.lti import operator as _lti
from torchfx._ops.sos import autograd as _sos
from torchfx._ops.sos import vmap as _sos_vmap  # noqa: F401

__all__ = [
    "PARALLEL_SCAN_THRESHOLD",
    "biquad_forward",
    "fir_forward",
    "parallel_iir_forward",
]

PARALLEL_SCAN_THRESHOLD = 1024
"""Signals of at least this many samples are split along time and carried by a scan; read at every call."""


def parallel_iir_forward(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int | None = None,
    taps: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Filter a signal through a whole cascade of second-order sections: one dispatch at any depth.

    Args:
        x: float32 or float64, (..., time).
        sos: float64, (sections, 6), rows b0 b1 b2 a0 a1 a2.
        state: float64, (sections, ..., 2), SciPy's `sosfilt` zi; None starts from rest.
        threshold: signals of at least this many samples may be split along time;
            None means `PARALLEL_SCAN_THRESHOLD`.
        taps: float64, (n,), a finite impulse response to run before the cascade, from rest, in the same dispatch.

    Returns:
        The output like x, and the state after it like `state`.

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
    if threshold is None:
        threshold = PARALLEL_SCAN_THRESHOLD
    if taps is not None:
        y, _, after = _lti.lti_forward(x, taps, sos, None, state, threshold)
        return y, after
    return _sos.sos_forward(x, sos, state, threshold)


def biquad_forward(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int | None = None
) -> tuple[Tensor, Tensor]:
    """Filter a signal through one second-order section.

    Args:
        x: float32 or float64, (..., time).
        b: float64, (3,), numerator.
        a: float64, (3,), denominator.
        state: float64, (..., 2), SciPy's `lfilter` zi; None starts from rest.
        threshold: as in `parallel_iir_forward`.

    Returns:
        The output like x, and the state after it like `state`.
    """
    if threshold is None:
        threshold = PARALLEL_SCAN_THRESHOLD
    if torch._C._are_functorch_transforms_active():
        return _biquad.biquad_forward(x, b, a, state, threshold)
    return torch.ops.torchfx_ext.biquad_forward.default(x, b, a, state, threshold)  # type: ignore[no-any-return]


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Filter a signal through a finite impulse response.

    Args:
        x: float32 or float64, (..., time).
        taps: float64, (n,).
        state: float64, (..., n - 1), SciPy's `lfilter` zi; None starts from rest.

    Returns:
        The output like x, and the state after it like `state`.
    """
    return _fir.fir_forward(x, taps, state)
