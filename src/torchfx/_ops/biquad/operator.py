"""Schema, argument checks, shapes and kernels of `torchfx_ext::biquad_forward`: a cascade of one section."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_same_device, check_signal, check_state
from torchfx._ops.library import library
from torchfx._ops.sos.operator import sos_forward_native, sos_forward_reference
from torchfx.errors import ArgumentError, ArgumentTypeError

library.define(
    "biquad_forward(Tensor x, Tensor b, Tensor a, Tensor? state=None, int threshold=2048) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def _row(x: Tensor, b: Tensor, a: Tensor, state: Tensor | None) -> Tensor:
    """Raise on bad arguments; return b and a as one row of second-order sections."""
    check_signal(x)
    for name, values in (("b", b), ("a", a)):
        if values.dtype != torch.float64:
            raise ArgumentTypeError(f"{name} must be float64, got {values.dtype}")
        if values.shape != (3,):
            raise ArgumentError(f"{name} must have the shape (3,), got {tuple(values.shape)}")
    if state is not None:
        check_state(state, (*x.shape[:-1], 2))
    check_same_device(x, b=b, a=a, state=state)
    return torch.cat([b, a])[None]


def biquad_forward_native(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int = 2048
) -> tuple[Tensor, Tensor]:
    """Run csrc's kernel on CPU tensors."""
    y, after = sos_forward_native(x, _row(x, b, a, state), None if state is None else state[None], threshold)
    return y, after[0]


def biquad_forward_reference(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int = 2048
) -> tuple[Tensor, Tensor]:
    """Run the plain PyTorch form on any device that has float64."""
    y, after = sos_forward_reference(x, _row(x, b, a, state), None if state is None else state[None], threshold)
    return y, after[0]


def biquad_forward_fake(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int = 2048
) -> tuple[Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    _row(x, b, a, state)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    return y, x.new_empty((*x.shape[:-1], 2), dtype=torch.float64)


library.impl("biquad_forward", biquad_forward_native, "CPU")
library.impl("biquad_forward", biquad_forward_reference, "CompositeExplicitAutograd")
torch.library.register_fake("torchfx_ext::biquad_forward", biquad_forward_fake, lib=library)
