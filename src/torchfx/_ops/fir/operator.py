"""Schema, argument checks, shapes and kernels of `torchfx_ext::fir_forward`."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native, reference_warning
from torchfx._ops.checks import check_finite, check_same_device, check_signal, check_state
from torchfx._ops.fir import reference
from torchfx._ops.library import library
from torchfx._ops.strided import as_channels, empty_output, packed, raise_for
from torchfx.errors import ArgumentError, ArgumentTypeError

library.define(
    "fir_forward(Tensor x, Tensor taps, Tensor? state=None) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def check(x: Tensor, taps: Tensor, state: Tensor | None) -> tuple[int, ...]:
    """Raise on bad arguments; return the state's shape, (*leading, taps - 1)."""
    check_signal(x)
    if taps.dtype != torch.float64:
        raise ArgumentTypeError(f"taps must be float64, got {taps.dtype}")
    if taps.ndim != 1 or taps.numel() < 1:
        raise ArgumentError(f"taps must have the shape (n >= 1,), got {tuple(taps.shape)}")
    shape = (*x.shape[:-1], taps.numel() - 1)
    if state is not None:
        check_state(state, shape)
        check_same_device(x, "state", state)
    check_same_device(x, "taps", taps)
    return shape


def fir_forward_native(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Run csrc's kernel on CPU tensors."""
    if native.library is None:
        return fir_forward_reference(x, taps, state)
    after = torch.empty(*check(x, taps, state), dtype=torch.float64)
    time = x.shape[-1]
    signal, channel_stride, time_stride = as_channels(x, time)
    taps = packed(taps)
    y = empty_output(x)
    status = native.call["fir_forward"](
        x.dtype is torch.float64,
        signal.data_ptr(), channel_stride, time_stride, 1, y.data_ptr(), time, x.numel() // time, time,
        taps.data_ptr(), taps.numel(), 1, 1,
        0 if state is None else (state := packed(state)).data_ptr(), after.data_ptr(),
        torch.get_num_threads(),
    )  # fmt: skip
    if status:
        check_finite("taps", taps)
        raise_for(status, "torchfx_fir_forward")
    return y, after


def fir_forward_reference(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Run the plain PyTorch form on any device that has float64."""
    shape = check(x, taps, state)
    check_finite("taps", taps)
    reference_warning.warn_once(x.device)
    signal = x.reshape(-1, x.shape[-1]).double()
    start = x.new_zeros(shape, dtype=torch.float64) if state is None else state
    # A transform would spread a NaN over the whole channel.
    directly = taps.numel() <= reference.DIRECT_TAPS or not bool(torch.isfinite(signal).all())
    form = reference.direct if directly else reference.through_fft
    y, after = form(signal, taps, start.reshape(signal.shape[0], -1))
    # Both are parts of one tensor; results of their own are contiguous and share nothing.
    return y.reshape(x.shape).to(x.dtype).contiguous(), after.reshape(shape).clone(
        memory_format=torch.contiguous_format
    )


def fir_forward_fake(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    shape = check(x, taps, state)
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(shape, dtype=torch.float64)


library.impl("fir_forward", fir_forward_native, "CPU")
library.impl("fir_forward", fir_forward_reference, "CompositeExplicitAutograd")
library.impl("fir_forward", fir_forward_fake, "Meta")
