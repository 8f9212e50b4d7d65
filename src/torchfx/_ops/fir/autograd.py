"""`torchfx_ext::fir_forward` under autograd, and `torchfx_ext::fir_backward`, which computes its gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.dispatch import is_plain, outside_transforms, wants_gradient
from torchfx._ops.fir import gradient
from torchfx._ops.fir.operator import fir_forward_native
from torchfx._ops.library import library
from torchfx._ops.strided import as_channels, empty_output, packed, raise_for

library.define(
    "fir_backward(Tensor grad_y, Tensor grad_state, Tensor x, Tensor taps, bool need_x=True, bool need_taps=True)"
    " -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


class FirForward(torch.autograd.Function):
    """The response with its backward pass: native the first time, differentiable itself where that is asked for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, taps: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.torchfx_ext.fir_forward.default(x, taps, state)  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, grad_y: Tensor, grad_state: Tensor) -> tuple[Tensor | None, ...]:
        x, taps = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient is wanted
            found = gradient.backward(fir_forward, grad_y, grad_state, x, taps)
        else:
            found = torch.ops.torchfx_ext.fir_backward.default(grad_y, grad_state, x, taps, *ctx.needs_input_grad[:2])
        return tuple(grad if need else None for grad, need in zip(found, ctx.needs_input_grad, strict=True))


apply_outside = outside_transforms(FirForward)


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Call the operator; under torch.func transforms through autograd's own door, which knows how to nest them."""
    if torch._C._are_functorch_transforms_active():
        return FirForward.apply(x, taps, state)  # type: ignore[no-any-return,no-untyped-call]
    return torch.ops.torchfx_ext.fir_forward.default(x, taps, state)  # type: ignore[no-any-return]


def fir_forward_autograd(x: Tensor, taps: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Record the call where a gradient is wanted, else get out of the way."""
    if wants_gradient(x, taps, state):
        return apply_outside(x, taps, state)  # type: ignore[no-any-return]
    if is_plain(x):
        return fir_forward_native(x, taps, state)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.torchfx_ext.fir_forward.default(x, taps, state)  # type: ignore[no-any-return]


def fir_backward_native(
    grad_y: Tensor, grad_state: Tensor, x: Tensor, taps: Tensor, need_x: bool = True, need_taps: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Run csrc's kernels on CPU tensors; what is not needed comes back empty."""
    if native.library is None:
        return fir_backward_reference(grad_y, grad_state, x, taps, need_x, need_taps)
    time, count = x.shape[-1], taps.numel()
    signal, *strides = as_channels(x, time)
    grad, *grad_strides = as_channels(grad_y, time)
    taps, grad_state = packed(taps), packed(grad_state)
    channels, threads, double = x.numel() // time, torch.get_num_threads(), x.dtype == torch.float64
    grad_x = empty_output(x) if need_x else x.new_empty(0)
    grad_taps = torch.empty_like(taps) if need_taps else taps.new_empty(0)
    grad_before = torch.empty_like(grad_state)
    status = 0
    if need_x:
        status = native.call["fir_backward_x"](
            double, grad.data_ptr(), *grad_strides, grad_state.data_ptr(), channels, time, taps.data_ptr(), count, 1, 1,
            grad_x.data_ptr(), time, grad_before.data_ptr(), threads,
        )  # fmt: skip
    else:
        reach = count - 1
        grad_before.copy_(torch.cat([grad_y[..., :reach].double(), grad_state], dim=-1)[..., :reach])
    if need_taps and not status:
        status = native.call["fir_backward_taps"](
            double, grad.data_ptr(), *grad_strides, grad_state.data_ptr(), signal.data_ptr(), *strides, 1,
            channels, time, grad_taps.data_ptr(), count, 1, 1, threads,
        )  # fmt: skip
    if status:
        raise_for(status, "torchfx_fir_backward")
    return grad_x, grad_taps, grad_before


def fir_backward_reference(
    grad_y: Tensor, grad_state: Tensor, x: Tensor, taps: Tensor, need_x: bool = True, need_taps: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the plain PyTorch form on any device that has float64."""
    grad_x, grad_taps, grad_before = gradient.backward(fir_forward, grad_y, grad_state, x, taps)
    return (
        grad_x.contiguous() if need_x else x.new_empty(0),
        grad_taps.clone() if need_taps else taps.new_empty(0),
        grad_before.clone(memory_format=torch.contiguous_format),
    )


def fir_backward_fake(
    grad_y: Tensor, grad_state: Tensor, x: Tensor, taps: Tensor, need_x: bool = True, need_taps: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if need_x else x.new_empty(0)
    grad_taps = torch.empty_like(taps, memory_format=torch.contiguous_format) if need_taps else taps.new_empty(0)
    return grad_x, grad_taps, torch.empty_like(grad_state, memory_format=torch.contiguous_format)


library.impl("fir_forward", fir_forward_autograd, "Autograd")
library.impl("fir_backward", fir_backward_native, "CPU")
library.impl("fir_backward", fir_backward_reference, "CompositeExplicitAutograd")
library.impl("fir_backward", fir_backward_fake, "Meta")
