"""The network in blocks as long as the shortest delay, of matrix products and cascades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.delay_network.schema import shapes


def delay_network_forward(
    operators: Mapping[str, Callable[..., Any]],
    x: Tensor,
    delays: Sequence[int],
    system: Tensor,
    sos: Tensor | None,
    lines: Tensor | None,
    state: Tensor | None,
    filter_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the network on any device that has float64; gradients follow."""
    (y_shape, _), (lines_shape, _), (state_shape, _) = shapes(x, delays, system, sos, lines, state, filter_first)
    count, block, time = len(delays), min(delays), x.shape[-1]
    wide = x.double().expand(*y_shape[:-2], *x.shape[-2:])
    zeros: Any = {"dtype": torch.float64, "device": x.device}
    held = list((torch.zeros(lines_shape, **zeros) if lines is None else lines).split(list(delays), dim=-1))
    after = torch.zeros(state_shape, **zeros) if state is None else state
    feedback, entrance = system[..., :count, :count], system[..., :count, count:]

    def filtered(signals: Tensor) -> Tensor:
        nonlocal after
        if sos is None:
            return signals
        signals, after = operators["sos_forward"](signals, sos, after, None)
        return signals

    outputs = []
    for part in wide.split(block, dim=-1) if time else ():
        size = part.shape[-1]
        r = torch.stack([line[..., :size] for line in held], dim=-2)
        outputs.append(system[..., count:, :] @ torch.cat([r, part], dim=-2))
        s = feedback @ filtered(r) if filter_first else filtered(feedback @ r)
        s = s + entrance @ part
        held = [torch.cat([line[..., size:], s[..., i, :]], dim=-1) for i, line in enumerate(held)]
    y = torch.cat(outputs, dim=-1) if outputs else wide.new_zeros(y_shape)
    if sos is not None and sos.requires_grad:
        y = y + 0 * sos.sum()  # has a derivative, zero, by filters that nothing has reached yet
    return y.to(x.dtype), torch.cat(held, dim=-1), after
