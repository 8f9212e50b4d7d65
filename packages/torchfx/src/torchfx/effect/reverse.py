"""Time reversal."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from torchfx._ops import elementwise
from torchfx.core.processor import Processor
from torchfx.pieces import PIECE, Pieces

__all__ = ["Reverse"]


class Reverse(Processor):
    """Play a signal backwards.

    Examples:
        >>> import torch
        >>> Reverse()(torch.tensor([1.0, 2.0, 3.0]))
        tensor([3., 2., 1.])
    """

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, whose last sample comes first"

    def forward(self, x: Tensor) -> Tensor:
        """Return the samples in the opposite order."""
        return elementwise.flip(x)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the samples in the opposite order, read from the end."""
        for stop in range(x.time, 0, -PIECE):
            yield x.read(max(0, stop - PIECE), stop).flip(-1)
