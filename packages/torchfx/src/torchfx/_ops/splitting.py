"""From which length on the recurrences of second-order sections are split along time."""

from __future__ import annotations

__all__ = ["THRESHOLD"]

THRESHOLD = 1024
"""Signals of at least this many samples are split, over lanes and threads or by a scan; read at every call
that is given no threshold."""
