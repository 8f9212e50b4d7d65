"""The all-pole filter on CUDA tensors, on the current stream; the host waits for nothing."""

from __future__ import annotations

from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.allpole import reference
from torchfx._ops.memory import coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.state_space.triton import MOST_SCANNED, scan

__all__ = ["allpole_backward", "allpole_forward"]

why_missing = triton_launch.why_missing


def allpole_forward(x: Tensor, a: Tensor, past: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the filter. Coefficients are not checked: reading them would wait for the device."""
    if y.numel() == 0:
        pass_on(past, after)
    elif a.shape[-1] <= MOST_SCANNED:
        scan(x, a, 2, past, y, after)
    else:
        _sequential(x, a, past, y, after)


allpole_backward = reference.allpole_backward
"""By the definition, whose recursion runs through `allpole_forward`."""


def _sequential(x: Tensor, a: Tensor, past: Tensor | None, y: Tensor, after: Tensor) -> None:
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    channels, (times, order), lanes = y.numel() // time, a.shape[-2:], triton_launch.warp_size(x)
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    weights, rows, a_repeat = coefficient_rows(a, 2, leading)
    places = 1 << (order - 1).bit_length()
    together = max(1, lanes // places)
    triton_launch.launch(
        kernels.sequential, -(-channels // together), x,
        signal, row_stride, time_stride, repeat, y, weights, order, times, rows, a_repeat,
        after if past is None else packed(past), after, channels, time,
        HAS_STATE=past is not None, CHANNELS=together, N=places,
    )  # fmt: skip
