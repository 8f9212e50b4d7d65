"""Derivatives of the network.

The adjoint is a network, too. With the gradients a of the lines' inputs s, b of what the feedback matrix gives, and c
of the output y, backwards in time and without the filters' states,

    a_i[t] = (A^T b + C^T c)_i[t + delays[i]],    b = F(a),    gradient of x = B^T a + D^T c

or b = a, and F after A^T, where the filters come first: M transposed, and the filters on the other side. It starts from
the gradient of the lines after, and leaves that of the lines before. The gradient of M holds sums over time: those of
products of a, b and c with what M reads. The filters' gradients come from the filters' operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.delay_network import composite
from torchfx._ops.delay_network.schema import shapes
from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS"]


def _backward(forward: Callable[..., Any], arguments: Sequence[Any], grads: Sequence[Tensor | None]) -> list[Any]:
    """Return gradients through the blocks of the composite, which can be differentiated again."""
    from torchfx._ops import operators

    again = torch.is_grad_enabled()
    with torch.enable_grad():
        results = composite.delay_network_forward(operators, *arguments)
    pairs = [(result, grad) for result, grad in zip(results, grads, strict=True) if grad is not None]
    reached = [(result, grad) for result, grad in pairs if result.requires_grad]
    x, _, system, sos, lines, state, _ = arguments
    tensors = (x, system, sos, lines, state)
    wanted = [tensor for tensor in tensors if tensor is not None and tensor.requires_grad]
    found = iter(
        torch.autograd.grad(
            [result for result, _ in reached], wanted, [grad for _, grad in reached],
            create_graph=again, allow_unused=True, materialize_grads=True,
        )
    )  # fmt: skip
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in tensors]


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Sequence[Any],
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor | None]:
    """Return gradients that won't be differentiated again: a run of the adjoint, and one of the network for M's."""
    x, delays, system, sos, lines, state, filter_first = arguments
    grad_y, grad_lines, grad_state = grads
    _, need_system, need_sos, _, need_state = needed
    run = operators["delay_network_forward"]
    if x.shape[-1] == 0 or need_state or grad_state is not None:
        return _backward(run, arguments, grads)
    count = len(delays)
    if grad_y is None:
        grad_y = x.new_zeros(shapes(*arguments)[0][0])
    transposed = system.mT
    alone = not (need_system or need_sos)
    adjoint, start = transposed if alone else _heard(transposed, count), _turned(grad_lines, delays)
    found, end, _ = run(grad_y.flip(-1), delays, adjoint, sos, start, None, not filter_first)
    found, before = found.flip(-1), _turned(end, delays)
    if alone:
        return found.sum_to_size(x.shape), None, None, before, None

    a, c = found.double(), grad_y.double()
    grad_x = transposed[..., count:, :] @ torch.cat([a, c], dim=-2)
    r = run(x, delays, _heard(system, count), sos, lines, state, filter_first)[0].double()
    b, read, grad_sos = a, r, None
    if sos is not None:
        feedback = system[..., :count, :count]
        into, out_of = (r, feedback.mT @ a) if filter_first else (feedback @ r, a)
        through, grad_sos, _ = operators["sos_backward"](
            out_of, None, into, sos, state, None, None, not filter_first, need_sos, False
        )
        if filter_first:
            read, _ = operators["sos_forward"](r, sos, state, None)
        else:
            b = through
    wide = x.double().expand(*grad_y.shape[:-2], *x.shape[-2:])
    to_lines = torch.cat([b @ read.mT, a @ wide.mT], dim=-1)
    to_output = c @ torch.cat([r, wide], dim=-2).mT
    grad_system = torch.cat([to_lines, to_output], dim=-2).sum_to_size(system.shape)
    return grad_x.to(x.dtype).sum_to_size(x.shape), grad_system, grad_sos, before, None


def _heard(system: Tensor, count: int) -> Tensor:
    """Return a system whose outputs are the outputs of its lines."""
    identity = torch.eye(count, system.shape[-1], dtype=system.dtype, device=system.device)
    return torch.cat([system[..., :count, :], identity.expand(*system.shape[:-2], -1, -1)], dim=-2)


def _turned(lines: Tensor | None, delays: Sequence[int]) -> Tensor | None:
    """Return what each line holds, the newest first."""
    return None if lines is None else torch.cat([line.flip(-1) for line in lines.split(list(delays), -1)], dim=-1)


GRADIENTS = {"delay_network_forward": Gradient(_backward, None, first=_first)}
