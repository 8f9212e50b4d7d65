"""Numbers as a sentence has them."""

from __future__ import annotations

__all__ = ["duration", "often", "shortened"]


def duration(ns: float) -> str:
    """Write a time with three digits or so, in a unit that suits it.

    >>> duration(181_565_000), duration(49_073), duration(10_033_725_000), duration(400)
    ('181.6 ms', '49.1 us', '10.0 s', '0.4 us')
    """
    for size, unit in ((1e9, "s"), (1e6, "ms")):
        if ns >= size:
            return f"{ns / size:,.1f} {unit}"
    return f"{ns / 1e3:,.1f} us"


def often(count: int) -> str:
    """Write how many times.

    >>> often(1), often(1200)
    ('once', '1,200 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def shortened(text: str, length: int = 40) -> str:
    """Cut a name that is too long for a title.

    >>> shortened("void at::native::vectorized_elementwise_kernel<4, ...>", 24)
    'void at::native::vect...'
    """
    return text if len(text) <= length else text[: length - 3] + "..."
