"""Derivatives of the pass from samples to bands: the samples' gradient in one pass, all others by the composite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient
from torchfx._ops.mel import composite

__all__ = ["GRADIENTS"]


def _backward(forward: Callable[..., Any], arguments: Sequence[Any], grads: Sequence[Tensor | None]) -> list[Any]:
    """Return gradients through the composite, which can be differentiated again."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        y = composite.mel_forward({}, *arguments)
    tensors = arguments[:3]  # x, window, filters
    wanted = [tensor for tensor in tensors if tensor is not None and tensor.requires_grad]
    found = iter(torch.autograd.grad(y, wanted, grads, create_graph=again, allow_unused=True, materialize_grads=True))
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in tensors]


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Sequence[Any],
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor | None]:
    """Return gradients that won't be differentiated again."""
    if any(needed[1:]):
        return _backward(operators["mel_forward"], arguments, grads)
    return operators["mel_backward"](grads[0], *arguments), None, None


GRADIENTS = {"mel_forward": Gradient(_backward, None, first=_first)}
