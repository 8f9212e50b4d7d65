"""Schema and checks of response and cascade in one call: arguments and states are those of the two operators."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.fir.schema import forward_shapes as fir_shapes
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx._ops.sos.schema import forward_shapes as sos_shapes

__all__ = ["OPERATORS"]


def shapes(
    x: Tensor, taps: Tensor, sos: Tensor, taps_state: Tensor | None, state: Tensor | None, threshold: int | None
) -> Shapes:
    """Return shapes and dtypes of the output and both states after."""
    (between, _), taps_after = fir_shapes(x, taps, taps_state)
    y, after = sos_shapes(x.expand(between), sos, state, threshold)
    if tuple(y[0]) != tuple(between):  # the sections alone have more leading dimensions: the response runs in all
        taps_after = ((*y[0][:-1], taps.shape[-1] - 1), torch.float64)
    return y, taps_after, after


TAPS_STATE, STATE = Operand(1, exact=True), Operand(1, lead=1, exact=True)

OPERATORS = (
    Operator(
        "lti_forward(Tensor x, Tensor taps, Tensor sos, Tensor? taps_state=None, Tensor? state=None,"
        " int? threshold=None) -> (Tensor y, Tensor taps_after, Tensor after)",
        {"x": Operand(1), "taps": Operand(1), "sos": Operand(2), "taps_state": TAPS_STATE, "state": STATE},
        (Operand(1, exact=True), TAPS_STATE, STATE),
        shapes,
    ),
)
