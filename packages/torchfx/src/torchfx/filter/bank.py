"""Filter banks: one input signal, several output bands, one operator call."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from torchfx.filter.recursive import RecursiveFilter
from torchfx.plan import LTI

__all__ = ["Bank"]


class Bank(RecursiveFilter):
    """A bank of filters: (..., time) becomes (..., bands, time).

    A subclass declares its parameters and writes `design`, which returns (..., bands, sections, 6), and `bands`.
    """

    @property
    @abstractmethod
    def bands(self) -> int:
        """The number of bands."""

    def lti(self, rate: Any) -> LTI:
        """Return the filters; they add a dimension to the signal."""
        return replace(super().lti(rate), added_dimensions=1)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions: the signal's, followed by the bands."""
        return (*shape, self.bands)
