"""Copies between memories: which way, and whether the host's side is pinned."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["PAGEABLE", "PINNED", "WAYS", "copy_direction", "copy_label", "read_copy"]

PAGEABLE: Final = 1
PINNED: Final = 2

WAYS: Final = ("", "HtoD", "DtoH", "DtoD", "PtoP", "HtoH")
"""Direction of a copy between memories: H is the host's, D the device's, P another device's; "" if unknown."""

# Intel's names, of PTI: M is memory the driver doesn't know, so pageable; H is the host's that it does know.
_INTEL: Final = {
    "M2D": (1, PAGEABLE), "H2D": (1, PINNED), "D2M": (2, PAGEABLE), "D2H": (2, PINNED), "D2D": (3, 0), "P2P": (4, 0)
}  # fmt: skip
_LETTERS: Final = {"device": "D", "pageable": "H", "pinned": "H", "array": "D"}


def read_copy(name: str, kind: str = "", source: str = "", target: str = "") -> tuple[int, int]:
    """Index into `WAYS`, and `PAGEABLE`, `PINNED` or 0 (unknown), of a copy's name.

    Args:
        name: such as "Memcpy HtoD (Pageable -> Device)"; some exporters name every copy "Memcpy".
        kind, source, target: the arguments "copy kind", "src kind" and "dst kind", if present.

    >>> read_copy("Memcpy HtoD (Pageable -> Device)"), read_copy("Memcpy", "", "Device", "Pinned")
    ((1, 1), (2, 2))
    """
    intel = re.match(r"Memcpy ([MHDP]2[MHDP])\b", name)
    if intel:
        return _INTEL.get(intel[1], (0, 0))
    text = f"{name} {kind}"
    way = next((i for i, known in enumerate(WAYS) if known and known in text), 0)
    if not way and (kind or source):
        pair = f"{_LETTERS.get(source.lower(), '?')}to{_LETTERS.get(target.lower(), '?')}"
        way = WAYS.index(pair) if pair in WAYS else 0
    places = f"{name} {source} {target}".lower()
    return way, PAGEABLE if "pageable" in places else PINNED if "pinned" in places else 0


def copy_label(name: str) -> str:
    """Return "HtoD (Pageable -> Device)" for "Memcpy HtoD (Pageable -> Device)"."""
    return name.removeprefix("Memcpy").strip()


_DIRECTION: Final = re.compile(r"(?i).*?\b([HDPA])to([HDPA])\b")
_PLACES: Final = {"h": "host", "d": "device", "p": "peer", "a": "array"}


def copy_direction(name: str) -> str:
    """From where to where a copy goes, in words; "" where its name doesn't show it.

    >>> copy_direction("Memcpy HtoD (Pageable -> Device)")
    'host to device'
    """
    found = _DIRECTION.match(name)
    return f"{_PLACES[found[1].lower()]} to {_PLACES[found[2].lower()]}" if found else ""
