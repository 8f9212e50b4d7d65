"""`torchfx_ext::sos_forward` under autograd, and `torchfx_ext::sos_backward`, which computes its gradients."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.dispatch import is_plain, wants_gradient
from torchfx._ops.library import library
from torchfx._ops.sos import gradient, recording
from torchfx._ops.sos.operator import sos_forward_native
from torchfx._ops.strided import as_channels, empty_output, packed, raise_for

library.define(
    "sos_backward(Tensor grad_y, Tensor grad_state, Tensor x, Tensor sos, Tensor? state=None, int threshold=1024,"
    " bool need_x=True, bool need_sos=True, Tensor? checkpoints=None) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


class SosForward(torch.autograd.Function):
    """The cascade with its backward pass: native the first time, differentiable itself where that is asked for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, sos: Tensor, state: Tensor | None, threshold: int, checkpointed: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        with torch._C._AutoDispatchBelowAutograd():
            if checkpointed:
                recorded: tuple[Tensor, Tensor, Tensor] = torch.ops.torchfx_ext.sos_forward_recording.default(
                    x, sos, state, threshold
                )
                return recorded
            return *torch.ops.torchfx_ext.sos_forward.default(x, sos, state, threshold), None

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor | None]) -> None:
        x, sos, state, ctx.threshold, _ = inputs
        checkpoints = output[2]
        if checkpoints is not None:
            ctx.mark_non_differentiable(checkpoints)
        ctx.save_for_backward(x, sos, state, checkpoints)
        ctx.set_materialize_grads(False)  # else zeros as large as the checkpoints are filled in, for nobody

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor | None, grad_state: Tensor | None, _: None) -> tuple[Tensor | None, ...]:
        x, sos, state, checkpoints = ctx.saved_tensors
        if grad_y is None:
            grad_y = torch.zeros_like(x)
        if grad_state is None:
            grad_state = x.new_zeros((sos.shape[0], *x.shape[:-1], 2), dtype=torch.float64)
        if torch.is_grad_enabled():  # a gradient of the gradient is wanted
            found = gradient.backward(sos_forward, grad_y, grad_state, x, sos, state)
        else:
            need_x, need_sos = ctx.needs_input_grad[:2]
            found = torch.ops.torchfx_ext.sos_backward.default(
                grad_y, grad_state, x, sos, state, ctx.threshold, need_x, need_sos, checkpoints
            )
        return *(grad if need else None for grad, need in zip(found, ctx.needs_input_grad, strict=False)), None, None


# `apply` binds the arguments to this signature on every call; without it kept here, finding it takes 15 of 75 us.
SosForward.forward.__signature__ = inspect.signature(SosForward.forward)  # type: ignore[attr-defined]


def _recorded(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int) -> tuple[Tensor, Tensor]:
    y, after, _ = SosForward.apply(x, sos, state, threshold, recording.pays(x, sos))  # type: ignore[no-untyped-call]
    return y, after


def sos_forward(x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024) -> tuple[Tensor, Tensor]:
    """Call the operator; under torch.func transforms through autograd's own door, which knows how to nest them."""
    if torch._C._are_functorch_transforms_active():
        return _recorded(x, sos, state, threshold)
    return torch.ops.torchfx_ext.sos_forward.default(x, sos, state, threshold)  # type: ignore[no-any-return]


def sos_forward_autograd(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Record the call where a gradient is wanted, else get out of the way."""
    if wants_gradient(x, sos, state):
        return _recorded(x, sos, state, threshold)
    if is_plain(x):
        return sos_forward_native(x, sos, state, threshold)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.torchfx_ext.sos_forward.default(x, sos, state, threshold)  # type: ignore[no-any-return]


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
    time = x.shape[-1]
    signal, *strides = as_channels(x, time)
    grad, *grad_strides = as_channels(grad_y, time)
    sos, grad_state = packed(sos), packed(grad_state)
    state = None if state is None else packed(state)
    grad_x = empty_output(x) if need_x else x.new_empty(0)
    grad_sos = torch.empty_like(sos) if need_sos else sos.new_empty(0)
    grad_before = torch.empty_like(grad_state)
    status = native.library.torchfx_sos_backward(
        x.dtype == torch.float64, signal.data_ptr(), *strides, grad.data_ptr(), *grad_strides, x.numel() // time, time,
        sos.data_ptr(), sos.shape[0], None if state is None else state.data_ptr(), grad_state.data_ptr(),
        None if checkpoints is None else checkpoints.data_ptr(),
        grad_x.data_ptr() if need_x else None, time, grad_sos.data_ptr() if need_sos else None, grad_before.data_ptr(),
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
    grad_x, grad_sos, grad_before = gradient.backward(sos_forward, grad_y, grad_state, x, sos, state)
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


library.impl("sos_forward", sos_forward_autograd, "Autograd")
library.impl("sos_backward", sos_backward_native, "CPU")
library.impl("sos_backward", sos_backward_reference, "CompositeExplicitAutograd")
library.impl("sos_backward", sos_backward_fake, "Meta")
