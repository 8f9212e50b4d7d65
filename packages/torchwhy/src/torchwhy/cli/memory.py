"""`torchwhy memory`."""

from __future__ import annotations

from torchwhy.allocator.snapshot import load_snapshot
from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.present.formats import check_format
from torchwhy.present.memory_snapshot import memory_snapshot

__all__ = ["run"]


def run(snapshot: str, form: str, verbose: bool) -> int:
    """Say who holds the memory; return 0, 2 for misuse, 3 for what cannot be read."""
    try:
        check_format(form)
        with patience(f"reading {snapshot}"):
            document = memory_snapshot(load_snapshot(snapshot))
    except ArgumentError as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    show(document, form, verbose=verbose)
    return 0
