"""Banks: one signal in, several bands out, in one operator call."""

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
        """How many bands there are."""

    def lti(self, rate: Any) -> LTI:
        """Return the filters, which add a dimension to the signal."""
        return replace(super().lti(rate), added_dimensions=1)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions: the bands after the signal's."""
        return (*shape, self.bands)
