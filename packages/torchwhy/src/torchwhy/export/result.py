"""The result of an export."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Export"]


@dataclass(frozen=True)
class Export:
    """A file that was written.

    Attributes:
        file: the trace it was made of.
        output: the new file.
        to: its format.
        events: how many events, or rows of a table, it has.
        of_events: how many the trace has.
        bytes: size of the new file.
        clipped: events that end earlier than in the trace, since the format has no room for what overlaps only partly.
        clipped_us: by how much, all together.
        moved: events in further rows of their thread or stream, since they overlap another only partly.
        left_out: events whose times cannot be true.
        arrows: from launches to what they put on a device.
    """

    file: str
    output: str
    to: str
    events: int
    of_events: int
    bytes: int
    clipped: int = 0
    clipped_us: float = 0.0
    moved: int = 0
    left_out: int = 0
    arrows: int = 0
