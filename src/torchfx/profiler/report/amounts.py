"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["counted", "duration", "percent", "pieces"]

_UNITS = ((60e6, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "us"))


def duration(us: float) -> str:
    """Return microseconds with three significant digits and a fitting unit.

    >>> duration(12.34), duration(174812), duration(0.02), duration(0), duration(999.7)
    ('12.3 us', '175 ms', '20.0 ns', '0 us', '1.00 ms')
    """
    if not us:
        return "0 us"
    size = abs(us)
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if size >= 0.9995 * scale), (1e-3, "ns"))
    number = us / scale
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:,.{digits}f} {unit}"


def percent(share: float) -> str:
    """Return a fraction in per cent, small ones with a digit more, and never a rounded 0 or 100.

    >>> percent(0.3567), percent(0.0123), percent(0.00001), percent(0.9999), percent(0), percent(1)
    ('36%', '1.2%', '<0.1%', '>99%', '0%', '100%')
    """
    if share <= 0:
        return "0%"
    if share >= 1:
        return "100%"
    if share < 0.001:
        return "<0.1%"
    if share >= 0.995:
        return ">99%"
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and its noun.

    >>> counted(1, "step"), counted(1200, "step"), counted(2, "copy", "copies")
    ('1 step', '1,200 steps', '2 copies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def pieces(words: list[str]) -> str:
    """Join words to an enumeration.

    >>> pieces(["a"]), pieces(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
