"""What `torchfx cut` says about the file it wrote, as a document."""

from __future__ import annotations

from torchfx.profiler.present.document import Document, Facts
from torchfx.profiler.trace.model.cut import Cut
from torchfx.profiler.wording import size_text

__all__ = ["cut_trace"]


def cut_trace(cut: Cut) -> Document:
    """Return how much of the trace the file has."""
    rows = (
        ("from", cut.file),
        ("events", f"{cut.events:,} of {cut.of_events:,}"),
        ("size", size_text(cut.bytes)),
    )
    return Document(cut.output, (Facts(rows),), cut.to_dict(), command="cut", file=cut.output)
