"""The page of a snapshot of the allocator, or of two: `torchwhy memory -o page.html`."""

from __future__ import annotations

from torchwhy.allocator.changes import changes
from torchwhy.allocator.snapshot import Snapshot
from torchwhy.page.assemble import page
from torchwhy.page.memory_parts import memory_curve, memory_parts
from torchwhy.page.report_page import framed
from torchwhy.present.html import View, blocks_as_html, escaped
from torchwhy.present.memory_changes import change_blocks, memory_changes
from torchwhy.present.memory_snapshot import memory_snapshot

__all__ = ["memory_changes_page", "memory_page"]

_VIEW = View(verbose=True, linked=True, level=3)


def memory_page(snapshot: Snapshot) -> str:
    """Return the page of one snapshot as the text of an HTML file."""
    document = memory_snapshot(snapshot)
    lines = [
        line
        for memory in snapshot.devices
        for line in (f"<h2>{escaped(memory.name)}</h2>", *memory_parts(memory, _VIEW))
    ]
    content = lines or blocks_as_html(document.blocks, _VIEW)
    return page(framed(document, {"memory": content}), document.title)


def memory_changes_page(before: Snapshot, after: Snapshot) -> str:
    """Return the page of two snapshots: both curves of each device, and who holds more or less than before."""
    document = memory_changes(before, after)
    lines: list[str] = []
    for change in changes(before, after):
        lines.append(f"<h2>{escaped(change.name)}</h2>")
        for note, memory in (("before", change.before), ("after", change.after)):
            lines += memory_curve(memory, note) if memory else []
        lines += blocks_as_html(change_blocks(change), _VIEW)
    return page(framed(document, {"memory": lines or blocks_as_html(document.blocks, _VIEW)}), document.title)
