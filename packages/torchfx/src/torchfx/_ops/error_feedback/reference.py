"""The quantiser in plain PyTorch: the recurrence as one would write it on paper."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_finite


def error_feedback_forward(
    x: Tensor, dither: Tensor, taps: Tensor, errors: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run the quantiser on any device that has float64: on the CPU, as each sample waits for the one before."""
    if not x.is_cpu:
        found = torch.ops.torchfx_ext.error_feedback_forward(*map(_on_cpu, (x, dither, taps, errors)))
        for result, values in zip((y, after), found, strict=True):
            result.copy_(values)
        return
    check_finite("taps", taps)
    history = torch.zeros_like(after) if errors is None else errors
    outputs = []
    for sample, noise in zip(*(each.double().expand(y.shape).unbind(-1) for each in (x, dither)), strict=True):
        wanted = sample - (taps * history).sum(-1)
        outputs.append(torch.round(wanted + noise))
        history = torch.cat([(outputs[-1] - wanted)[..., None], history[..., :-1]], dim=-1)
    if outputs:
        y.copy_(torch.stack(outputs, dim=-1))
    after.copy_(history)


def _on_cpu(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.cpu()
