"""`torchfx_ext::sos_forward` under autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx._ops.dispatch import is_plain, outside_transforms, unobserved, wants_gradient
from torchfx._ops.library import library
from torchfx._ops.sos import gradient, recording
from torchfx._ops.sos.backward import backward_native, or_zeros
from torchfx._ops.sos.operator import sos_forward_native


class SosForward(torch.autograd.Function):
    """The cascade with its backward pass: native the first time, differentiable itself where that is asked for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, sos: Tensor, state: Tensor | None, threshold: int, checkpointed: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        if unobserved(x):
            if checkpointed:
                return recording.sos_forward_recording_native(x, sos, state, threshold)
            return *sos_forward_native(x, sos, state, threshold), None
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
        need_x, need_sos, need_state, *_ = ctx.needs_input_grad
        if grad_y is None:
            grad_y = torch.zeros_like(x)
        by_x: Tensor | None
        by_sos: Tensor | None
        by_state: Tensor | None
        if torch.is_grad_enabled():  # a gradient of the gradient is wanted
            by_x, by_sos, by_state = gradient.backward(sos_forward, grad_y, or_zeros(grad_state, x, sos), x, sos, state)
        elif unobserved(x) and is_plain(grad_y):
            needed = need_x, need_sos, need_state
            by_x, by_sos, by_state = backward_native(
                grad_y, grad_state, x, sos, state, ctx.threshold, needed, checkpoints
            )
        else:
            grad_state = or_zeros(grad_state, x, sos)
            by_x, by_sos, by_state = torch.ops.torchfx_ext.sos_backward.default(
                grad_y, grad_state, x, sos, state, ctx.threshold, need_x, need_sos, checkpoints
            )
        return by_x if need_x else None, by_sos if need_sos else None, by_state if need_state else None, None, None


apply_outside = outside_transforms(SosForward)


def sos_forward(x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024) -> tuple[Tensor, Tensor]:
    """Call the operator; under torch.func transforms through autograd's own door, which knows how to nest them."""
    if torch._C._are_functorch_transforms_active():
        y, after, _ = SosForward.apply(x, sos, state, threshold, recording.pays(x, sos))  # type: ignore[no-untyped-call]
        return y, after
    return torch.ops.torchfx_ext.sos_forward.default(x, sos, state, threshold)  # type: ignore[no-any-return]


def sos_forward_autograd(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Record the call where a gradient is wanted, else get out of the way."""
    if wants_gradient(x, sos, state):
        y, after, _ = apply_outside(x, sos, state, threshold, recording.pays(x, sos))
        return y, after
    if is_plain(x):
        return sos_forward_native(x, sos, state, threshold)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.torchfx_ext.sos_forward.default(x, sos, state, threshold)  # type: ignore[no-any-return]


library.impl("sos_forward", sos_forward_autograd, "Autograd")
