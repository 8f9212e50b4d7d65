"""`size=64..4096` as numbers."""

from __future__ import annotations

import re

from torchfx.errors import ArgumentError

__all__ = ["sizes_from"]


def sizes_from(text: str) -> list[int]:
    """Return the sizes that a sweep's text asks for: a range in doublings, or a list.

    >>> sizes_from("size=64..512"), sizes_from("size=64,100,1000"), sizes_from("size=100..300")
    ([64, 128, 256, 512], [64, 100, 1000], [100, 200, 300])
    """
    if match := re.fullmatch(r"size=(\d+)\.\.(\d+)", text):
        low, high = int(match[1]), int(match[2])
        if 1 <= low < high:
            doublings = range((high // low).bit_length())
            return sorted({*(low << i for i in doublings), high})
    elif re.fullmatch(r"size=\d+(,\d+)+", text):
        sizes = sorted({int(part) for part in text.removeprefix("size=").split(",")})
        if sizes[0] >= 1 and len(sizes) > 1:
            return sizes
    raise ArgumentError(f"sweep must be size=LOW..HIGH with 1 <= LOW < HIGH, or size=A,B,..., got {text!r}")
