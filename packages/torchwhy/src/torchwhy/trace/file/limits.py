"""How large a part of a trace file may be. A few megabytes of gzip can hold gigabytes; reading stops before they do."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["LIMITS", "Excess", "Limits"]


class Limits(NamedTuple):
    """The most of each that is read; far beyond any trace that a program wrote.

    Attributes:
        element: bytes of an event, of a value at the top level, or of the damage between two of them.
        depth: lists and objects inside each other.
        text: bytes of a text that is kept, such as a name; UTF-8.
        texts: bytes of all distinct texts together.
        top: bytes of all keys and values at the top level together.
        events: how many.
    """

    element: int = 64 << 20
    depth: int = 500
    text: int = 1 << 20
    texts: int = 1 << 30
    top: int = 64 << 20
    events: int = 100_000_000


LIMITS: Final = Limits()

_WHAT: Final = {
    "element": ("an event or value", "bytes"),
    "depth": ("a value", "levels of lists and objects"),
    "text": ("a text", "bytes"),
    "texts": ("all distinct texts up to here", "bytes"),
    "top": ("all keys and values at the top level up to here", "bytes"),
    "events": ("the list up to here", "events"),
}


class Excess(Exception):  # noqa: N818 -- the scanners' own; `scan` raises TraceError instead
    """A part of the file is larger than its limit.

    Attributes:
        limit: the field of `Limits`.
        value: what was found, at least.
        place: where the event or value begins in the decompressed file, bytes.
    """

    def __init__(self, limit: str, value: int, place: int = 0) -> None:
        super().__init__(limit, value, place)
        self.limit, self.value, self.place = limit, value, place

    def described(self, limits: Limits) -> str:
        """Return it as a clause."""
        what, unit = _WHAT[self.limit]
        limit = getattr(limits, self.limit)
        return f"{what} (at byte {self.place:,}) has {self.value:,} {unit} or more, the limit is {limit:,}"
