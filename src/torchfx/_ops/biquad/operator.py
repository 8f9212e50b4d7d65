"""`torchfx_ext::biquad_forward`: a cascade of one section, given as b and a.

It is defined in terms of `sos_forward`, which brings kernels, shapes and gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_same_device, check_signal, check_state
from torchfx._ops.library import library
from torchfx._ops.sos.autograd import sos_forward
from torchfx.errors import ArgumentError, ArgumentTypeError

library.define(
    "biquad_forward(Tensor x, Tensor b, Tensor a, Tensor? state=None, int threshold=1024) -> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def biquad_forward(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor]:
    """Run b and a as one row of second-order sections, or raise on bad arguments."""
    check_signal(x)
    for name, values in (("b", b), ("a", a)):
        if values.dtype != torch.float64:
            raise ArgumentTypeError(f"{name} must be float64, got {values.dtype}")
        if values.shape != (3,):
            raise ArgumentError(f"{name} must have the shape (3,), got {tuple(values.shape)}")
        check_same_device(x, name, values)
    if state is not None:
        check_state(state, (*x.shape[:-1], 2))
        check_same_device(x, "state", state)
    before = None if state is None else state[None]
    y, after = sos_forward(x, torch.cat([b, a])[None], before, threshold)
    return y, after[0]


library.impl("biquad_forward", biquad_forward, "CompositeImplicitAutograd")
