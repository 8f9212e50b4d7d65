"""Faults of a trace file, in sentences."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import msgspec

from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted

__all__ = ["Repair", "repairs"]


class Repair(msgspec.Struct, frozen=True):
    """A fault of the file, its count, and a sentence about it."""

    kind: str
    count: int
    sentence: str


_TIMES: Final = {
    "without_time": "without a time were left out",
    "negative": "with a negative duration were given none",
    "absurd": "longer than a day were left out",
    "zero": "of GPU work said to begin at time 0 were left out",
}
_TEXTS: Final = {
    "control_characters": ("text", "with control characters"),
    "invalid_utf8": ("text", "that are not UTF-8"),
    "unescaped_quotes": ("quote", "inside texts that should have been escaped"),
    "not_numbers": ("value", "not a number (such as NaN or N/A) or out of range"),
    "stray_commas": ("comma", "too many"),
    "damaged_events": ("event", "that could not be read and were left out"),
}
_WHOLE: Final = {
    "truncated": "the file ends early: what follows the last complete event is lost",
    "truncated_gzip": "the compressed data ends early or is damaged: the rest is lost",
    "bare_list": "a bare list of events: device and settings are not recorded",
}


def repairs(trace: Trace) -> tuple[Repair, ...]:
    """Return what had to be repaired or left out to read the file; () for a sound file."""
    found = []
    for kind, value in asdict(trace.repairs).items():
        if not value:
            continue
        if kind in _WHOLE:
            sentence = _WHOLE[kind]
        elif kind in _TEXTS:
            noun, what = _TEXTS[kind]
            sentence = f"{counted(int(value), noun)} {what}"
        else:
            sentence = f"{kind.replace('_', ' ')}: {value}"
        found.append(Repair(kind, int(value), sentence))
    for kind, value in asdict(trace.events.damage).items():
        if value:
            what = _TIMES.get(kind, f"with a wrong time ({kind.replace('_', ' ')})")
            found.append(Repair(kind, int(value), f"{counted(int(value), 'event')} {what}"))
    return tuple(found)
