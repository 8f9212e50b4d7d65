"""Ballistics in plain PyTorch: the recurrence as one would write it on paper."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_finite


def ballistics_forward(x: Tensor, coefficients: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the detector on any device that has float64."""
    check_finite("coefficients", coefficients)
    rise, fall = coefficients.unbind(-1)
    last, outputs = torch.zeros_like(after) if state is None else state, []
    for sample in x.double().expand(y.shape).unbind(-1):
        last = last + torch.where(sample > last, rise, fall) * (sample - last)
        outputs.append(last)
    if outputs:
        y.copy_(torch.stack(outputs, dim=-1))
    after.copy_(last)
