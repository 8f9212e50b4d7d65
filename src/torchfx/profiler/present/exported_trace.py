"""What `torchfx export` says about the file it wrote, as a document."""

from __future__ import annotations

from torchfx.profiler.export.result import Export
from torchfx.profiler.present.document import Block, Document, Facts, Text
from torchfx.profiler.wording import counted, duration, size_text

__all__ = ["exported_trace"]

_HOW: dict[str, str] = {
    "speedscope": "Open it at https://www.speedscope.app.",
    "perfetto": "torchfx view shows it, or open it at https://ui.perfetto.dev.",
}


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
            f"{counted(export.moved, 'event has', 'events have')} a row of their own, since they overlap others partly."
        )
    if export.left_out:
        notes.append(f"{counted(export.left_out, 'event is', 'events are')} left out: their times cannot be true.")
    notes += [_HOW[export.to]] if export.to in _HOW else []
    blocks: tuple[Block, ...] = (Facts(tuple(rows)), *(Text(note, look="dim") for note in notes))
    return Document(export.output, blocks, export.to_dict(), command="export", file=export.output)
