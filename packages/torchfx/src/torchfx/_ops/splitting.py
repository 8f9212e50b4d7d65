"""From which length on the recurrences of second-order sections are split along time."""

from __future__ import annotations

__all__ = ["THRESHOLD", "threshold_of"]

THRESHOLD = 1024
"""Signals of at least this many samples are split, over lanes and threads or by a scan; read at every call."""


def threshold_of(given: int | None) -> int:
    """Return the threshold of a call: the one given, or `THRESHOLD`."""
    return THRESHOLD if given is None else given
