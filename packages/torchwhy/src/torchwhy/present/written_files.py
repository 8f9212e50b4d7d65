"""The answers of `torchwhy cut`, `export` and `merge` about the written file, as documents."""

from __future__ import annotations

from dataclasses import asdict

from torchwhy.export.result import Export
from torchwhy.present.document import Block, Cell, Column, Document, Facts, File, Table, Text, rows_of
from torchwhy.ranks.timeline import Clock, Merged
from torchwhy.schema import SCHEMA
from torchwhy.trace.model.cut import Cut
from torchwhy.wording import counted, duration, ranges, size_text

__all__ = ["cut_trace", "exported_trace", "merged_timeline"]

_HOW: dict[str, str] = {
    "speedscope": "Open it at https://www.speedscope.app.",
    "perfetto": "torchwhy view shows it, or open it at https://ui.perfetto.dev.",
}


def cut_trace(cut: Cut) -> Document:
    """Return how much of the trace the file has."""
    rows = (
        ("from", cut.file),
        ("events", f"{cut.events:,} of {cut.of_events:,}"),
        ("size", size_text(cut.bytes)),
    )
    return Document(cut.output, (Facts(rows),), {"schema": SCHEMA, **asdict(cut)}, command="cut", file=cut.output)


def exported_trace(export: Export) -> Document:
    """Return what the file has, and what differs from the trace."""
    counted_as = "events" if export.to in _HOW else "rows"
    rows = [("from", export.file), (counted_as, f"{export.events:,}"), ("size", size_text(export.bytes))]
    rows += [("arrows", f"{export.arrows:,} from launches to their work")] if export.arrows else []
    notes = []
    if export.clipped:
        many = counted(export.clipped, "event ends", "events end")
        notes.append(f"{many} earlier than in the trace, by {duration(export.clipped_us)} in all, so that they nest.")
    if export.moved:
        notes.append(
            f"{counted(export.moved, 'event has', 'events have')} separate rows, since they overlap others partly."
        )
    if export.left_out:
        notes.append(f"{counted(export.left_out, 'event is', 'events are')} left out: their times cannot be true.")
    notes += [_HOW[export.to]] if export.to in _HOW else []
    blocks: tuple[Block, ...] = (Facts(tuple(rows)), *(Text(note, look="dim") for note in notes))
    return Document(export.output, blocks, {"schema": SCHEMA, **asdict(export)}, command="export", file=export.output)


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
        {"schema": SCHEMA, **asdict(merged)},
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
        text += f" It is unknown how those of ranks {names} relate to the first rank's: they share no collectives."
    return text
