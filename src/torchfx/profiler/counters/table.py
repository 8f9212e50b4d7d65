"""Counts as a short table for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchfx.profiler.wording import size_text

if TYPE_CHECKING:
    from torchfx.profiler.counters.counts import Counts

__all__ = ["SHOWN", "details", "table"]

SHOWN = 8  # operators, lines and reasons named before "and n more"
_ALWAYS = ("operators", "kernel_launches", "syncs", "copies", "allocations", "graph_breaks", "recompiles")


def table(counts: Counts) -> str:
    """Return one line per metric that says something, and below it where it comes from.

    >>> from torchfx.profiler.counters.counts import Counts
    >>> print(table(Counts(operators={"aten::mm": 2}, allocations=2, allocated_bytes=2048)))
    operators        2
        aten::mm     2
    kernel_launches  0
    syncs            0
    copies           0
    allocations      2  2.05 kB
    graph_breaks     0
    recompiles       0
    """
    rows = [row for name, value in counts.metrics().items() for row in _metric_rows(counts, name, value)]
    width = max(len(label) for label, _, _ in rows)
    digits = max(len(number) for _, number, _ in rows)
    lines = [f"{label:<{width}}  {number:>{digits}}  {text}".rstrip() for label, number, text in rows]
    return "\n".join([*lines, *(f"note: {note}" for note in counts.notes)])


def _metric_rows(counts: Counts, name: str, value: int | None) -> Iterator[tuple[str, str, str]]:
    shown = name in _ALWAYS or (value and name in ("native_calls", "dispatches", "compilations"))
    if not shown:
        return
    number = "-" if value is None else str(value)
    yield name, number, size_text(counts.allocated_bytes or 0) if name == "allocations" and value else ""
    yield from _few(details(counts, name))


def details(counts: Counts, name: str) -> list[tuple[str, str, str]]:
    """Return what a metric is made of, largest first."""
    if name in ("operators", "native_calls"):
        calls: dict[str, int] = getattr(counts, name)
        return [(f"    {key}", str(calls[key]), "") for key in sorted(calls, key=lambda key: (-calls[key], key))]
    if name == "copies":
        return [
            (f"    {kind}", str(total.times), size_text(total.bytes) if total.bytes is not None else "")
            for kind, total in sorted((counts.copies or {}).items())
        ]
    if name == "syncs":
        ordered = sorted(counts.syncs or (), key=lambda sync: -sync.times)
        return [(f"    {sync.operator}", str(sync.times), sync.where) for sync in ordered]
    if name == "graph_breaks":
        return [("", str(found.times), _joined(found.reason, found.where)) for found in counts.graph_breaks]
    if name == "recompiles":
        return [(f"    {found.function}", "1", _joined(found.reason, found.where)) for found in counts.recompiles]
    return []


def _few(rows: list[tuple[str, str, str]]) -> Iterable[tuple[str, str, str]]:
    if len(rows) <= SHOWN:
        return rows
    return [*rows[:SHOWN], (f"    and {len(rows) - SHOWN} more", "", "")]


def _joined(reason: str, where: str) -> str:
    return f"{reason} ({where})" if where else reason
