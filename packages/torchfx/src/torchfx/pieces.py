"""Random access to a signal that is too long for memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import pad

__all__ = ["PIECE", "Pieces"]

PIECE = 1 << 16
"""Samples per channel that processors read and give at once, where nothing else decides."""


@dataclass(frozen=True)
class Pieces:
    """A signal (..., time) that is read in pieces.

    Attributes:
        shape: shape of the signal, (..., time).
        fetch: a function that returns the samples (..., stop - start) from `start` on, 0 <= start <= stop <= time.

    Examples:
        >>> import torch
        >>> x = Pieces.of(torch.tensor([1.0, 2.0, 3.0]))
        >>> x.read(-1, 2), x.read(2, 5)
        (tensor([0., 1., 2.]), tensor([3., 0., 0.]))
    """

    shape: tuple[int, ...]
    fetch: Callable[[int, int], Tensor]

    @classmethod
    def of(cls, x: Tensor) -> Pieces:
        """Return a signal in memory as pieces."""
        return cls(tuple(x.shape), lambda start, stop: x[..., start:stop])

    @property
    def time(self) -> int:
        """Samples per channel."""
        return self.shape[-1]

    def read(self, start: int, stop: int) -> Tensor:
        """Return the samples (..., stop - start) from `start` on; samples before and after the signal are 0."""
        first, last = (min(max(0, each), self.time) for each in (start, stop))
        before, behind = max(0, min(stop, first) - start), max(0, stop - max(start, last))
        x = self.fetch(first, last)
        return pad(x, (before, behind)) if before or behind else x

    def in_order(self) -> Iterator[tuple[int, Tensor]]:
        """Yield the signal from start to end in pieces, each with its position."""
        for start in range(0, self.time, PIECE):
            yield start, self.read(start, min(self.time, start + PIECE))
