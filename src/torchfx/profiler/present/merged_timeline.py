"""What `torchfx merge` says about the file it wrote, as a document."""

from __future__ import annotations

from torchfx.profiler.present.document import Cell, Column, Document, File, Table, Text, rows_of
from torchfx.profiler.ranks.timeline import Clock, Merged
from torchfx.profiler.wording import counted, duration, ranges

__all__ = ["merged_timeline"]


def merged_timeline(merged: Merged) -> Document:
    """Return which ranks are in the file, and what was done to their clocks."""
    columns = (Column("rank", number=True), Column("events", number=True), Column("clock"), Column("trace", below=True))
    rows: list[tuple[Cell, ...]] = [
        (str(one.rank), f"{one.events:,}", _clock(one.clock), File(one.file)) for one in merged.ranks
    ]
    return Document(
        merged.output,
        (
            Table(columns, rows_of(rows), "Ranks", noun=("rank", "ranks")),
            Text(_sentence([one.clock for one in merged.ranks])),
            Text("Open it at https://ui.perfetto.dev or in chrome://tracing: each rank has its own rows.", look="dim"),
        ),
        merged.to_dict(),
        command="merge",
        file=merged.output,
    )


def _clock(clock: Clock) -> str:
    if not clock.moved_us:
        return "as it is"
    sign = "+" if clock.moved_us > 0 else "-"
    ends = counted(clock.collectives, "collective")
    return f"{sign}{duration(abs(clock.moved_us))}, by {ends} shared with rank {clock.reference}"


def _sentence(clocks: list[Clock]) -> str:
    moved = [clock for clock in clocks if clock.moved_us]
    alone = [clock for clock in clocks[1:] if clock.reference is None]
    text = "Clocks are as they are in the files."
    if len(alone) < len(clocks) - 1:
        text = "Clocks are as they are in the files: shared collectives end together on them."
    if moved:
        spread = max(clock.spread_us for clock in moved)
        text = (
            f"{counted(len(moved), 'clock')} moved so that shared collectives end together: half of their ends agree "
            f"within {duration(spread)}."
        )
    if alone:
        names = ranges([clock.rank for clock in alone])
        text += f" Nothing tells how those of ranks {names} relate to the first rank's: they share no collectives."
    return text
