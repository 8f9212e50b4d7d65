"""Derivatives of the state-space operators in plain PyTorch: the definitions, themselves differentiable to any order.

Backwards in time the gradients pass through the same system turned round, with l for the gradient of the state:

    [l; grad_x] = M^T [l'; grad_y],    grad_M = [l'; grad_y] [s; x]^T

A tangent is the system's own answer to that of the signal and the state. A change of M adds dM [s; x]: to the output,
and to the next state, which is a separate signal with its own entrance.

The saturated loop has u = tanh(drive z) / drive with z = x - feedback y. A small change of u is slope * dz, with
slope = 1 - tanh(drive z)^2, plus what drive itself changes. Solved for u, the small changes follow a linear system that
changes from sample to sample, `_closed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx._ops.differentiation import BY_DISPATCHER, Gradient
from torchfx._ops.observers import gradients_are_batched

__all__ = ["GRADIENTS", "backward"]

Forward = Callable[..., tuple[Tensor, Tensor]]
Arguments = Sequence[Any]  # x, system, state


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, system and state before, shaped like these.

    Args:
        forward: the operator itself; differentiable as often as needed.
        arguments: signal (..., time), system (..., times, n + 1, n + 1), state before (..., n) or None.
        grads: gradients of output and state after, each None for zeros.
    """
    x, system, state = arguments
    grad_y, grad_after = grads
    signal = _wide(x, system)
    g = torch.zeros_like(signal) if grad_y is None else grad_y.double()
    turned = system.transpose(-1, -2).flip(-3)
    grad_x, grad_state = forward(g.flip(-1), turned, grad_after)
    later = _states(forward, g.flip(-1), turned, grad_after).flip(-2)
    grad_system = _outer(later, g, _states(forward, signal, system, state), signal)
    return grad_x.flip(-1).to(x.dtype).sum_to_size(x.shape), _gathered(grad_system, system), grad_state


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and state after; it takes the arguments of `backward`."""
    x, system, state = arguments
    by_x, by_system, by_state = tangents
    signal = _wide(x, system)
    dx = torch.zeros_like(signal) if by_x is None else by_x.double()
    dy, after = forward(dx, system, by_state)
    if by_system is not None:
        q = _applied(by_system, _states(forward, signal, system, state), signal)
        added, added_after = _entering(forward, q[..., :-1], system)
        dy, after = dy + added + q[..., -1], after + added_after
    return dy.to(x.dtype), after


def _wide(x: Tensor, system: Tensor, *others: Tensor) -> Tensor:
    """Return the signal in float64, with the result's leading dimensions."""
    leading = torch.broadcast_shapes(x.shape[:-1], system.shape[:-3], *(other.shape for other in others))
    return x.double().expand(*leading, x.shape[-1])


def _unit(system: Tensor, n: int) -> Tensor:
    return torch.eye(system.shape[-1], dtype=system.dtype, device=system.device)[n]


def _states(forward: Forward, x: Tensor, system: Tensor, state: Tensor | None) -> Tensor:
    """Return the states before each sample, (..., time, n): each is the output of the system that puts it out."""
    found = []
    for n in range(system.shape[-1] - 1):
        row = _unit(system, n).expand(*system.shape[:-2], 1, -1)
        found.append(forward(x, torch.cat([system[..., :-1, :], row], dim=-2), state)[0])
    return torch.stack(found, dim=-1)


def _entering(forward: Forward, signals: Tensor, system: Tensor) -> tuple[Tensor, Tensor]:
    """Return the answer to signals (..., time, n) that are added to the next states."""
    answers = []
    for n, signal in enumerate(signals.unbind(-1)):
        column = _unit(system, n).expand(*system.shape[:-2], -1)[..., None]
        answers.append(forward(signal, torch.cat([system[..., :-1], column], dim=-1), None))
    outputs, states = zip(*answers, strict=True)
    return sum(outputs[1:], outputs[0]), sum(states[1:], states[0])


def _applied(system: Tensor, states: Tensor, x: Tensor) -> Tensor:
    """Return M [s; x] for each sample, (..., time, n + 1)."""
    both = torch.cat([states, x[..., None]], dim=-1)
    return (_per_sample(system, x.shape[-1]) * both[..., None, :]).sum(-1)


def _outer(later: Tensor, g: Tensor, states: Tensor, x: Tensor) -> Tensor:
    """Return [l'; grad_y] [s; x]^T for each sample, (..., time, n + 1, n + 1)."""
    left = torch.cat([later, g[..., None]], dim=-1)
    return left[..., :, None] * torch.cat([states, x[..., None]], dim=-1)[..., None, :]


def _per_sample(system: Tensor, time: int) -> Tensor:
    times = system.shape[-3]
    return system if times in (1, time) else system.repeat_interleave(time // times, dim=-3)


def _gathered(per_sample: Tensor, system: Tensor) -> Tensor:
    """Return sums over the samples and the leading dimensions that a matrix served."""
    *leading, time, size, _ = per_sample.shape
    times = system.shape[-3]
    return per_sample.reshape(*leading, times, time // max(1, times), size, size).sum(-3).sum_to_size(system.shape)


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Arguments,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor]:
    """Return gradients that won't be differentiated again."""
    x, system, state = arguments
    grad_y, grad_after = grads
    if grad_y is None:
        grad_y = torch.zeros_like(_wide(x, system)).to(x.dtype)
    found: Sequence[Tensor] = operators["state_space_backward"](grad_y, grad_after, x, system, state, *needed)
    return found


# --- the saturated loop ---------------------------------------------------------------------------------------


class Loop(NamedTuple):
    """The saturated loop at work.

    Attributes:
        u: what drives the system, (..., time).
        y: its output.
        slope: of u by z.
        by_drive: derivative of u by drive at the same z.
        feedback: (..., 1).
        system: of the small changes, (..., time, n + 1, n + 1); its input enters as a change of u.
    """

    u: Tensor
    y: Tensor
    slope: Tensor
    by_drive: Tensor
    feedback: Tensor
    system: Tensor


def _loop(forward: Forward, arguments: Sequence[Any]) -> Loop:
    x, system, feedback, drive, state = arguments
    signal = _wide(x, system, feedback, drive)
    y, _ = forward(signal, system, feedback, drive, state)
    k, d = feedback[..., None], drive[..., None]
    z = signal - k * y
    h, safe = torch.tanh(d * z), torch.where(d == 0, 1.0, d)
    u, slope = torch.where(d == 0, z, h / safe), 1 - h * h
    by_drive = torch.where(d == 0, 0.0, (z * slope - u) / safe)
    return Loop(u, y, slope, by_drive, k, _closed(_per_sample(system, x.shape[-1]), slope, k))


def _closed(system: Tensor, slope: Tensor, feedback: Tensor) -> Tensor:
    """Return the system of small changes: du = e - slope feedback (C ds + D du), solved for du."""
    share = (1 / (1 + slope * feedback * system[..., -1, -1]))[..., None, None]
    by_state = (slope * feedback)[..., None, None] * system[..., -1:, :-1]
    entrance = system[..., -1:] * share
    return torch.cat([system[..., :-1] - entrance * by_state, entrance], dim=-1)


def _linear() -> Forward:
    """Return the operator that runs the small changes."""
    from torchfx._ops import operators

    found: Forward = (BY_DISPATCHER if gradients_are_batched() else operators)["state_space_forward"]
    return found


def saturated_backward(
    forward: Forward, arguments: Sequence[Any], grads: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of signal, system, feedback, drive and state before."""
    x, system, feedback, drive, state = arguments
    grad_y, grad_after = grads
    linear, loop = _linear(), _loop(forward, arguments)
    g = torch.zeros_like(loop.y) if grad_y is None else grad_y.double()
    turned = loop.system.transpose(-1, -2).flip(-3)
    by_u, grad_state = linear(g.flip(-1), turned, grad_after)
    by_u = by_u.flip(-1)
    later = _states(linear, g.flip(-1), turned, grad_after).flip(-2)
    by_y = g - loop.feedback * loop.slope * by_u
    grad_system = _outer(later, by_y, _states(linear, loop.u, system, state), loop.u)
    by_z = loop.slope * by_u
    return (
        by_z.to(x.dtype).sum_to_size(x.shape),
        _gathered(grad_system, system),
        (-loop.y * by_z).sum(-1).sum_to_size(feedback.shape),
        (loop.by_drive * by_u).sum(-1).sum_to_size(drive.shape),
        grad_state,
    )


def saturated_tangent(
    forward: Forward, arguments: Sequence[Any], tangents: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and state after."""
    x, system, _, _, state = arguments
    by_x, by_system, by_feedback, by_drive, by_state = tangents
    linear, loop = _linear(), _loop(forward, arguments)
    change = torch.zeros_like(loop.y) if by_x is None else loop.slope * by_x.double()
    if by_feedback is not None:
        change = change - loop.slope * loop.y * by_feedback[..., None]
    if by_drive is not None:
        change = change + loop.by_drive * by_drive[..., None]
    if by_system is None:
        dy, after = linear(change, loop.system, by_state)
        return dy.to(x.dtype), after
    q = _applied(by_system, _states(linear, loop.u, system, state), loop.u)
    dy, after = linear(change - loop.slope * loop.feedback * q[..., -1], loop.system, by_state)
    added, added_after = _entering(linear, q[..., :-1], loop.system)
    return (dy + added + q[..., -1]).to(x.dtype), after + added_after


GRADIENTS = {
    "state_space_forward": Gradient(backward, tangent, first=_first),
    "saturated_forward": Gradient(saturated_backward, saturated_tangent),
}
