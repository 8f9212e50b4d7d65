"""A named stretch of time: what a number in a report is a part of."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """A stretch of time and what it is.

    Attributes:
        name: such as "ProfilerStep#5 to ProfilerStep#10".
        start, end: nanoseconds.
    """

    name: str
    start: int
    end: int

    @property
    def us(self) -> float:
        """Its length, microseconds."""
        return (self.end - self.start) / 1000
