"""The cells of a difference's tables: pairs of numbers, changes and shares as texts."""

from __future__ import annotations

from torchfx.profiler.difference.totals import Total
from torchfx.profiler.wording import counted, duration, percent, size_text

__all__ = ["amount", "calls_text", "change_text", "more", "share_text", "signed"]


def change_text(total: Total) -> str:
    """What became of a total, from A to B."""
    if total.a is None or total.b is None or total.a == total.b:
        return ""
    if not total.beyond_noise:
        return "within the noise"
    if not total.a:
        return "new"
    return f"{total.b / total.a - 1:+.0%}" if total.b < 10 * total.a else f"x{total.b / total.a:,.0f}"


def more(count: int) -> tuple[str, ...]:
    """What the list leaves out, as the sentences below it."""
    return (f"{counted(count, 'more entry', 'more entries')} with -v.",) if count > 0 else ()


def calls_text(calls: tuple[float, float]) -> str:
    """How often on A and on B."""
    a, b = (f"{value:,.0f}" if value == round(value) else f"{value:,.1f}" for value in calls)
    return a if a == b else f"{a} -> {b}"


def signed(us: float) -> str:
    """A change of time, with its sign."""
    return f"{'+' if us > 0 else '-' if us < 0 else ''}{duration(abs(us))}"


def share_text(part: float, total: float) -> str:
    """The part of a change that arises in one place; blank where that is no part."""
    share = part / total if total else 0.0
    return f"{'-' if share < 0 else ''}{percent(abs(share))}" if 0 < abs(share) < 10 else ""


def amount(value: float | None, unit: str) -> str:
    """A total in its unit."""
    if value is None:
        return "-"
    if unit == "us":
        return duration(value)
    return size_text(value) if unit == "bytes" else f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
