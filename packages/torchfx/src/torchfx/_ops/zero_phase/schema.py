"""Schema and checks of the cascade that runs both ways: sections are float64 (..., sections, 6), as in the cascade.

`edge` is by how many samples the signal continues beyond each end, `extension` how: one of `EXTENSIONS`.
"""

from __future__ import annotations

from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["EXTENSIONS", "OPERATORS", "check_extension"]

EXTENSIONS = ("odd", "even", "constant")
"""The extensions, in the order of torchfx_extension, csrc/torchfx_dsp.h."""


def shapes(x: Tensor, sos: Tensor, edge: int, extension: str) -> Shapes:
    """Return shape and dtype of the output."""
    check_signal(x)
    check_coefficients("sos", sos, "(..., sections >= 1, 6)", (None, 6), x)
    check_extension(x, edge, extension)
    return (((*leading_dimensions("sos", sos, 2, x), x.shape[-1]), x.dtype),)


def check_extension(x: Tensor, edge: int, extension: str) -> None:
    """Raise unless a signal can go on like this."""
    if extension not in EXTENSIONS:
        raise ArgumentError(f"extension must be one of {', '.join(EXTENSIONS)}, got {extension!r}")
    if not 0 <= edge < max(1, x.shape[-1]):
        raise ArgumentError(f"edge must lie in [0, {x.shape[-1]}), the signal's samples, got {edge}")


OPERATORS = (
    Operator(
        "sos_zero_phase(Tensor x, Tensor sos, int edge, str extension) -> Tensor",
        {"x": Operand(1), "sos": Operand(2)},
        (Operand(1, exact=True),),
        shapes,
    ),
)
