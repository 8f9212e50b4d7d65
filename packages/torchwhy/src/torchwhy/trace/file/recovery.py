"""Where reading continues after damage; all functions return -1 where there is no such place before `end`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["find_end", "find_events", "find_start"]

_B: Final = rb"[\x00-\x20]*"
START: Final = re.compile(
    rb'(\{%b"ph"%b:)|\}%b,[\x00-\x20,]*(\{%b"(?:name|cat|pid|tid|ts|dur|args|id)"%b:)' % (_B, _B, _B, _B, _B)
)
END: Final = re.compile(rb'\}%b(?=\]%b(?:,%b"|\}|\Z))' % (_B, _B, _B))
EVENTS: Final = re.compile(rb'"traceEvents"%b:%b\[' % (_B, _B))


def find_start(data: bytes, i: int, end: int) -> int:
    """Return where the first event from `i` on plausibly begins.

    That is an object whose first key is "ph"; with another key of events, only after an object that ended.
    """
    match = START.search(data, i, end)
    return -1 if match is None else match.start(1) if match[1] is not None else match.start(2)


def find_end(data: bytes, i: int, end: int) -> int:
    """Return the place of the bracket with which the list of events plausibly ends."""
    match = END.search(data, i, end)
    return -1 if match is None else match.end()


def find_events(data: bytes, i: int, end: int) -> int:
    """Return the place after the bracket that opens the list of events."""
    match = EVENTS.search(data, i, end)
    return -1 if match is None else match.end()
