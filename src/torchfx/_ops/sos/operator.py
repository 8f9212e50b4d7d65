"""Schema, argument checks, shapes and kernels of `torchfx_ext::sos_forward`."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native, reference_warning
from torchfx._ops.checks import check_same_device, check_signal, check_sos, check_stable, check_state
from torchfx._ops.library import library
from torchfx._ops.sos import reference
from torchfx._ops.strided import as_channels, empty_output, packed, raise_for

library.define(
    "sos_forward(Tensor x, Tensor sos, Tensor? state=None, int threshold=1024) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def check(x: Tensor, sos: Tensor, state: Tensor | None) -> tuple[int, ...]:
    """Raise on bad arguments; return the state's shape, (sections, *leading, 2)."""
    check_signal(x)
    sections = check_sos(sos)
    check_same_device(x, "sos", sos)
    *leading, _ = x.shape
    shape = (sections, *leading, 2)
    if state is not None:
        check_state(state, shape)
        check_same_device(x, "state", state)
    return shape


def sos_forward_native(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Run csrc's kernel on CPU tensors."""
    if native.library is None:
        return sos_forward_reference(x, sos, state, threshold)
    shape = check(x, sos, state)
    time = x.shape[-1]
    signal, channel_stride, time_stride = as_channels(x, time)
    sos = packed(sos)
    y, after = empty_output(x), sos.new_empty(*shape)
    status = native.call["sos_forward"](
        x.dtype is torch.float64,
        signal.data_ptr(), channel_stride, time_stride, 1, y.data_ptr(), time, x.numel() // time, time,
        sos.data_ptr(), shape[0], 1, 1,
        0 if state is None else (state := packed(state)).data_ptr(), after.data_ptr(),
        threshold, torch.get_num_threads(),
    )  # fmt: skip
    if status:
        check_stable(sos)
        raise_for(status, "torchfx_sos_forward")
    return y, after


def sos_forward_reference(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Run the plain PyTorch form on any device that has float64."""
    shape = check(x, sos, state)
    check_stable(sos)
    reference_warning.warn_once(x.device)
    signal = x.reshape(-1, x.shape[-1]).double()
    start = x.new_zeros(shape, dtype=torch.float64) if state is None else state
    start = start.reshape(sos.shape[0], -1, 2)
    form = reference.scan if x.shape[-1] >= max(threshold, reference.BLOCK) else reference.loop
    y, after = form(signal, sos, start)
    return y.reshape(x.shape).to(x.dtype).contiguous(), after.reshape(shape)


def sos_forward_fake(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    shape = check(x, sos, state)
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(shape, dtype=torch.float64)


library.impl("sos_forward", sos_forward_native, "CPU")
library.impl("sos_forward", sos_forward_reference, "CompositeExplicitAutograd")
library.impl("sos_forward", sos_forward_fake, "Meta")
