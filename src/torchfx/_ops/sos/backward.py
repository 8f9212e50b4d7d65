"""`torchfx_ext::sos_backward`: the gradients of `sos_forward` with respect to signal, sections and state before."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.library import library
from torchfx._ops.sos import gradient, recording
from torchfx._ops.strided import as_channels, empty_output, packed, raise_for

library.define(
    "sos_backward(Tensor grad_y, Tensor grad_state, Tensor x, Tensor sos, Tensor? state=None, int threshold=1024,"
    " bool need_x=True, bool need_sos=True, Tensor? checkpoints=None) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


forward = torch.ops.torchfx_ext.sos_forward.default


def or_zeros(grad_state: Tensor | None, x: Tensor, sos: Tensor) -> Tensor:
    """Return the gradient of the state after, zeros where nothing depends on it."""
    if grad_state is not None:
        return grad_state
    return x.new_zeros((sos.shape[0], *x.shape[:-1], 2), dtype=torch.float64)


def sos_backward_native(
    grad_y: Tensor,
    grad_state: Tensor,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int = 1024,
    need_x: bool = True,
    need_sos: bool = True,
    checkpoints: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run csrc's kernel on CPU tensors; what is not needed comes back empty."""
    if native.library is None:
        return sos_backward_reference(grad_y, grad_state, x, sos, state, threshold, need_x, need_sos)
    if checkpoints is not None:
        recording.check_checkpoints(checkpoints, x, sos)
        checkpoints = packed(checkpoints)
    needed = need_x, need_sos, True
    by_x, by_sos, by_state = backward_native(grad_y, grad_state, x, sos, state, threshold, needed, checkpoints)
    return _or_empty(by_x, x), _or_empty(by_sos, sos), _or_empty(by_state, sos)


def _or_empty(gradient: Tensor | None, of: Tensor) -> Tensor:
    return of.new_empty(0) if gradient is None else gradient


def backward_native(
    grad_y: Tensor,
    grad_state: Tensor | None,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    threshold: int,
    needed: tuple[bool, bool, bool],
    checkpoints: Tensor | None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of signal, sections and state before, those needed; no gradient of the state means zeros."""
    if native.library is None:
        return gradient.backward(forward, grad_y, or_zeros(grad_state, x, sos), x, sos, state)
    need_x, need_sos, need_state = needed
    time = x.shape[-1]
    signal, channel_stride, time_stride = as_channels(x, time)
    grad, grad_channel_stride, grad_time_stride = as_channels(grad_y, time)
    grad_x = empty_output(x) if need_x else None
    grad_sos = torch.empty_like(sos, memory_format=torch.contiguous_format) if need_sos else None
    grad_before = sos.new_empty((sos.shape[0], *x.shape[:-1], 2)) if need_state else None
    status = native.call["sos_backward"](
        x.dtype is torch.float64,
        signal.data_ptr(), channel_stride, time_stride, 1, grad.data_ptr(), grad_channel_stride, grad_time_stride,
        x.numel() // time, time, (sos := packed(sos)).data_ptr(), sos.shape[0], 1, 1,
        0 if state is None else (state := packed(state)).data_ptr(),
        0 if grad_state is None else (grad_state := packed(grad_state)).data_ptr(),
        0 if checkpoints is None else checkpoints.data_ptr(),
        0 if grad_x is None else grad_x.data_ptr(), time,
        0 if grad_sos is None else grad_sos.data_ptr(), 0 if grad_before is None else grad_before.data_ptr(),
        threshold, torch.get_num_threads(),
    )  # fmt: skip
    if status:
        raise_for(status, "torchfx_sos_backward")
    return grad_x, grad_sos, grad_before


def sos_backward_reference(
    grad_y: Tensor,
    grad_state: Tensor,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int = 1024,
    need_x: bool = True,
    need_sos: bool = True,
    checkpoints: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the plain PyTorch form on any device that has float64."""
    grad_x, grad_sos, grad_before = gradient.backward(
        torch.ops.torchfx_ext.sos_forward.default, grad_y, grad_state, x, sos, state
    )
    return grad_x if need_x else x.new_empty(0), grad_sos if need_sos else sos.new_empty(0), grad_before


def sos_backward_fake(
    grad_y: Tensor,
    grad_state: Tensor,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int = 1024,
    need_x: bool = True,
    need_sos: bool = True,
    checkpoints: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if need_x else x.new_empty(0)
    grad_sos = torch.empty_like(sos, memory_format=torch.contiguous_format) if need_sos else sos.new_empty(0)
    return grad_x, grad_sos, torch.empty_like(grad_state, memory_format=torch.contiguous_format)


library.impl("sos_backward", sos_backward_native, "CPU")
library.impl("sos_backward", sos_backward_reference, "CompositeExplicitAutograd")
library.impl("sos_backward", sos_backward_fake, "Meta")
