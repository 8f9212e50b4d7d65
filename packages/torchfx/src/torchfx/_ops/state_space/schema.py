"""Schemas and checks of the state-space operators.

A system is a matrix M = [[A, B], [C, D]] of n + 1 rows and columns, and steps [s'; y] = M [s; x] from the state s and
the sample x to the next state and the output. Systems are float64 (..., times, n + 1, n + 1): each matrix serves
time / times samples, a whole number, so 1 is a constant system and `time` one for each sample. Leading dimensions
broadcast with the signal's. States are float64 (..., n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_signal, check_state, gradient_shapes
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["MOST_STATES", "OPERATORS", "forward_shapes"]

MOST_STATES = 4  # most_states in csrc/state_space
SIGNAL, SYSTEM, NUMBER = Operand(1), Operand(3), Operand(0)
STATE, RESULT = Operand(1, exact=True), Operand(1, exact=True)


def forward_shapes(x: Tensor, system: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    check_signal(x)
    _check_system(system, x)
    return _shapes(x, system, state, {"system": system.shape[:-3]})


def saturated_shapes(x: Tensor, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    check_signal(x)
    _check_system(system, x)
    own = {"system": system.shape[:-3], "feedback": feedback.shape, "drive": drive.shape}
    for name, values in (("feedback", feedback), ("drive", drive)):
        _check_numbers(name, values, x)
    return _shapes(x, system, state, own)


def backward_shapes(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    system: Tensor,
    state: Tensor | None,
    need_x: bool,
    need_system: bool,
    need_state: bool,
) -> Shapes:
    """Return the shapes of the gradients; a gradient that is not needed is empty."""
    forward, needed = forward_shapes(x, system, state), (need_x, need_system, need_state)
    return gradient_shapes(forward, x, system, needed, grad_after, grad_y=grad_y)


def _check_numbers(name: str, values: Tensor, x: Tensor) -> None:
    if values.dtype is not torch.float64:
        raise ArgumentTypeError(f"{name} must be float64, got {values.dtype}")
    if values.device != x.device:
        raise ArgumentError(f"{name} must be on the signal's device {x.device}, got {values.device}")


def _check_system(system: Tensor, x: Tensor) -> None:
    _check_numbers("system", system, x)
    size, time = system.shape[-1] if system.dim() else 0, x.shape[-1]
    if system.dim() < 3 or system.shape[-2] != size or not 2 <= size <= MOST_STATES + 1:
        raise ArgumentError(
            f"system must have the shape (..., times, n + 1, n + 1) with 1 to {MOST_STATES} states n, "
            f"got {tuple(system.shape)}"
        )
    times = system.shape[-3]
    if time % times if times else time:
        raise ArgumentError(
            f"system must hold one matrix, one for each sample, or one for each of as many blocks as divide the signal "
            f"evenly: got {times} for {time} samples"
        )


def _shapes(x: Tensor, system: Tensor, state: Tensor | None, own: Mapping[str, Sequence[int]]) -> Shapes:
    leading = broadcast_shapes(x=x.shape[:-1], **own)
    shape = (*leading, system.shape[-1] - 1)
    if state is not None:
        check_state(state, shape, x)
    return ((*leading, x.shape[-1]), x.dtype), (shape, torch.float64)


OPERATORS = (
    Operator(
        "state_space_forward(Tensor x, Tensor system, Tensor? state=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "system": SYSTEM, "state": STATE},
        (RESULT, STATE),
        forward_shapes,
    ),
    Operator(
        "state_space_backward(Tensor grad_y, Tensor? grad_after, Tensor x, Tensor system, Tensor? state,"
        " bool need_x, bool need_system, bool need_state) -> (Tensor grad_x, Tensor grad_system, Tensor grad_state)",
        {"grad_y": RESULT, "grad_after": STATE, "x": SIGNAL, "system": SYSTEM, "state": STATE},
        ("x", "system", STATE),
        backward_shapes,
    ),
    # u = tanh(drive (x - feedback y)) / drive drives the system instead of x.
    Operator(
        "saturated_forward(Tensor x, Tensor system, Tensor feedback, Tensor drive, Tensor? state=None)"
        " -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "system": SYSTEM, "feedback": NUMBER, "drive": NUMBER, "state": STATE},
        (RESULT, STATE),
        saturated_shapes,
    ),
)
