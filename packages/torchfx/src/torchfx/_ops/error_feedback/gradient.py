"""Derivatives of the quantiser: zeros, as those of every step function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS"]


def backward(
    forward: Callable[..., Any], arguments: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Return zeros like the arguments."""
    return tuple(None if each is None else torch.zeros_like(each) for each in arguments)


def tangent(
    forward: Callable[..., Any], arguments: Sequence[Tensor | None], tangents: Sequence[Tensor | None]
) -> tuple[Tensor, ...]:
    """Return zeros like the results."""
    return tuple(torch.zeros_like(each) for each in forward(*arguments))


GRADIENTS = {"error_feedback_forward": Gradient(backward, tangent)}
