"""Schemas and checks of the cascade's operators.

Sections are float64 (..., sections, 6), rows b0 b1 b2 a0 a1 a2; their leading dimensions broadcast with the signal's.
States are float64 (sections, ..., 2), SciPy's `sosfilt` zi.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal, check_state, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import TorchFXError

__all__ = ["CHECKPOINT_STEPS", "OPERATORS", "checkpoints_shape"]

CHECKPOINT_STEPS = 512  # TORCHFX_CHECKPOINT_STEPS

FLOAT32, FLOAT64 = torch.float32, torch.float64
SIGNAL, SECTIONS, STATE = Operand(core=1), Operand(core=2), Operand(core=1, lead=1, exact=True)
RESULT, CHECKPOINTS = Operand(core=1, exact=True), Operand(core=3, exact=True)


def forward_shapes(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    together = (x.is_cpu and sos.is_cpu) or (x.is_cuda and x.device == sos.device)
    if together and sos.dim() >= 2 and sos.dtype is FLOAT64 and x.dim():  # nearly every call, a dozen others less
        *rows, sections, columns = sos.shape
        signal = x.shape[:-1]
        if columns == 6 and sections and (x.dtype is FLOAT32 or x.dtype is FLOAT64) and (not rows or rows == [*signal]):
            shape = (sections, *signal, 2)
            if state is not None:
                check_state(state, shape, x)
            return (x.shape, x.dtype), (shape, FLOAT64)
    check_signal(x)
    check_coefficients("sos", sos, "(..., sections >= 1, 6)", (None, 6), x)
    leading = leading_dimensions("sos", sos, 2, x)
    shape = (sos.shape[-2], *leading, 2)
    if state is not None:
        check_state(state, shape, x)
    return ((*leading, x.shape[-1]), x.dtype), (shape, torch.float64)


def recording_shapes(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None) -> Shapes:
    """Return those of the forward pass, and the checkpoints'."""
    return *forward_shapes(x, sos, state, threshold), (checkpoints_shape(x, sos), torch.float64)


def backward_shapes(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    checkpoints: Tensor | None,
    threshold: int | None,
    need_x: bool,
    need_sos: bool,
    need_state: bool,
) -> Shapes:
    """Return the shapes of the gradients; a gradient that is not needed is empty."""
    (y_shape, _), (state_shape, _) = forward_shapes(x, sos, state, threshold)
    if tuple(grad_y.shape) != tuple(y_shape) or grad_y.dtype != x.dtype:
        raise TorchFXError(f"grad_y must be {x.dtype} of shape {tuple(y_shape)}, got {tuple(grad_y.shape)}")
    if grad_after is not None:
        check_state(grad_after, state_shape, x, "grad_after")
    if checkpoints is not None and tuple(checkpoints.shape) != checkpoints_shape(x, sos):
        raise TorchFXError(
            f"checkpoints must be those of sos_forward_recording for this signal, of shape "
            f"{checkpoints_shape(x, sos)}, got {tuple(checkpoints.shape)}"
        )
    return (
        (x.shape if need_x else (0,), x.dtype),
        (sos.shape if need_sos else (0,), torch.float64),
        (state_shape if need_state else (0,), torch.float64),
    )


def checkpoints_shape(x: Tensor, sos: Tensor) -> tuple[int, ...]:
    """Return the shape of the states kept for a backward pass, one every `CHECKPOINT_STEPS` samples."""
    leading = leading_dimensions("sos", sos, 2, x)
    return (*leading, (x.shape[-1] + CHECKPOINT_STEPS - 1) // CHECKPOINT_STEPS, sos.shape[-2], 2)


OPERATORS = (
    Operator(
        "sos_forward(Tensor x, Tensor sos, Tensor? state=None, int? threshold=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "sos": SECTIONS, "state": STATE},
        (RESULT, STATE),
        forward_shapes,
    ),
    # Keeps states that make the backward pass cheaper: the gradients of the sections need every section's signals
    # again. They are filtered once more from states the forward pass has kept: 3 % of a float32 signal with four
    # sections, against a whole pass to find them.
    Operator(
        "sos_forward_recording(Tensor x, Tensor sos, Tensor? state=None, int? threshold=None)"
        " -> (Tensor y, Tensor after, Tensor checkpoints)",
        {"x": SIGNAL, "sos": SECTIONS, "state": STATE},
        (RESULT, STATE, CHECKPOINTS),
        recording_shapes,
    ),
    Operator(
        "sos_backward(Tensor grad_y, Tensor? grad_after, Tensor x, Tensor sos, Tensor? state, Tensor? checkpoints,"
        " int? threshold, bool need_x, bool need_sos, bool need_state)"
        " -> (Tensor grad_x, Tensor grad_sos, Tensor grad_state)",
        {
            "grad_y": RESULT,
            "grad_after": STATE,
            "x": SIGNAL,
            "sos": SECTIONS,
            "state": STATE,
            "checkpoints": CHECKPOINTS,
        },
        ("x", "sos", STATE),
        backward_shapes,
    ),
)
