"""From which share of the window something limits a program, and the words that all verdicts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from torchwhy.analysis.breakdown import Breakdown, of_window, span_of
from torchwhy.analysis.names import VerdictKind
from torchwhy.wording import enumeration, percent

__all__ = ["LIMITS", "MOST", "STALL", "amount_of", "no_single_limit"]

STALL: Final = 0.2
"""Share of the window from which a stall may limit the program."""

MOST: Final = 0.5
"""Share from which one stall is the limit although others reach their own limits."""

# Waiting for the host is normal up to a point: a device that has work half of the time is where others draw the line
# (TensorBoard's plugin: 50% utilisation).
LIMITS: Final = {
    VerdictKind.INPUT: STALL,
    VerdictKind.COMMUNICATION: STALL,
    VerdictKind.COPY: STALL,
    VerdictKind.COMPILE: STALL,
    VerdictKind.OVERHEAD: 0.4,
}
"""Share of the window from which each stall limits the program, unless another one takes more."""


def amount_of(parts: Breakdown, share: float) -> str:
    """Return "35 % of the 3 steps (356 ms of 1.07 s)"."""
    return f"{percent(share)} of {span_of(parts)} ({of_window(parts, share)})"


def no_single_limit(parts: Breakdown, subject: str, shares: Sequence[str]) -> str:
    """Return the sentence of a program with several limits; `subject` such as "the GPU ", or ""."""
    return f"No single limit: of {span_of(parts)} ({of_window(parts, 1.0)}), {subject}{enumeration(list(shares))}"
