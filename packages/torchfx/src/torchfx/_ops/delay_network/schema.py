"""Schema and checks of the network of delay lines.

With r the outputs of n lines, s what goes into them, x the inputs and y the outputs,

    r_i[t] = s_i[t - delays[i]],    s = F(A r) + B x,    y = C r + D x,    M = [[A, B], [C, D]]

where F is a cascade of second-order sections for each line. With `filter_first`, s = A F(r) + B x. M is float64
(..., n + outputs, n + inputs), the sections (..., n, sections, 6); their leading dimensions broadcast with those of the
signal (..., inputs, time). The state holds the last inputs of the lines, oldest first, one line after the other:
float64 (..., sum of delays), and the filters', (sections, ..., n, 2), SciPy's zi.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_signal, check_state
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["OPERATORS"]

SIGNAL, SYSTEM, SECTIONS = Operand(2), Operand(2), Operand(3)
RESULT, LINES, STATE = Operand(2, exact=True), Operand(1, exact=True), Operand(2, lead=1, exact=True)


def shapes(
    x: Tensor,
    delays: Sequence[int],
    system: Tensor,
    sos: Tensor | None,
    lines: Tensor | None,
    state: Tensor | None,
    filter_first: bool,
) -> Shapes:
    """Return shapes and dtypes of the output and both states after."""
    check_signal(x)
    if x.dim() < 2 or x.shape[-2] == 0:
        raise ArgumentError(f"x must have the shape (..., inputs, time), got {tuple(x.shape)}")
    if not delays or any(delay < 1 for delay in delays):
        raise ArgumentError(f"delays must hold a whole number >= 1 for each line, got {list(delays)}")
    count, inputs = len(delays), x.shape[-2]
    for name, values in (("system", system), ("sos", sos)):
        if values is not None and values.dtype is not torch.float64:
            raise ArgumentTypeError(f"{name} must be float64, got {values.dtype}")
        if values is not None and values.device != x.device:
            raise ArgumentError(f"{name} must be on the signal's device {x.device}, got {values.device}")
    if system.dim() < 2 or system.shape[-1] != count + inputs or system.shape[-2] <= count:
        raise ArgumentError(
            f"system must have the shape (..., lines + outputs, lines + inputs) for {count} lines and {inputs} inputs, "
            f"got {tuple(system.shape)}"
        )
    if sos is not None and (sos.dim() < 3 or sos.shape[-3] != count or sos.shape[-2] < 1 or sos.shape[-1] != 6):
        raise ArgumentError(f"sos must have the shape (..., {count} lines, sections >= 1, 6), got {tuple(sos.shape)}")
    own = {"x": x.shape[:-2], "system": system.shape[:-2]} | ({} if sos is None else {"sos": sos.shape[:-3]})
    leading = broadcast_shapes(**own)
    of_lines = (*leading, sum(delays))
    of_filters = (0 if sos is None else sos.shape[-2], *leading, count, 2)
    if lines is not None:
        check_state(lines, of_lines, x, "lines")
    if state is not None:
        check_state(state, of_filters, x)
    y = (*leading, system.shape[-2] - count, x.shape[-1])
    return (y, x.dtype), (of_lines, torch.float64), (of_filters, torch.float64)


OPERATORS = (
    Operator(
        "delay_network_forward(Tensor x, int[] delays, Tensor system, Tensor? sos=None, Tensor? lines=None,"
        " Tensor? state=None, bool filter_first=False) -> (Tensor y, Tensor lines_after, Tensor after)",
        {"x": SIGNAL, "system": SYSTEM, "sos": SECTIONS, "lines": LINES, "state": STATE},
        (RESULT, LINES, STATE),
        shapes,
    ),
)
