"""`torchwhy memory`."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from torchwhy.allocator.recorded import recorded_memory
from torchwhy.allocator.snapshot import Snapshot, load_snapshot
from torchwhy.cli.console import complain, patience, tell, write_file
from torchwhy.cli.documents import show
from torchwhy.cli.traces import trace_in
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.loading.trace import load
from torchwhy.page.memory_page import memory_changes_page, memory_page
from torchwhy.present.formats import check_format
from torchwhy.present.memory_changes import memory_changes
from torchwhy.present.memory_snapshot import memory_snapshot
from torchwhy.wording import size_text

__all__ = ["run"]

_PICKLE = b"\x80"


def run(given: Sequence[str], form: str, verbose: bool, output: Path | None, opens: bool) -> int:
    """Say who holds the memory, or write the page; return 0, 2 for misuse, 3 for what cannot be read or written."""
    try:
        check_format(form)
        if len(given) > 2:
            raise ArgumentError(f"SNAPSHOT must be one file, or two to compare, got {len(given)}")  # noqa: TRY301
        if opens and output is None:
            raise ArgumentError("--open needs -o FILE, which names the page to open")  # noqa: TRY301
        with patience(f"reading {' and '.join(given)}"):
            found = [_read(path) for path in given]
            if output is None:
                document = memory_snapshot(found[0]) if len(found) == 1 else memory_changes(found[0], found[1])
            else:
                text = memory_page(found[0]) if len(found) == 1 else memory_changes_page(found[0], found[1])
    except ArgumentError as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or ' and '.join(given)}: {error.strerror or error}", 3)
    if output is None:
        show(document, form, verbose=verbose)
        return 0
    try:
        write_file(output, text)
    except OSError as error:
        return complain(f"cannot write {output}: {error.strerror or error}", 3)
    tell(f"wrote {output}, {size_text(len(text.encode()))}")
    if opens:
        webbrowser.open(output.resolve().as_uri())
    return 0


def _read(given: str) -> Snapshot:
    """A snapshot; of a trace, or a run's folder, the memory it recorded."""
    if Path(given).is_file():
        with Path(given).open("rb") as file:
            if file.read(1) == _PICKLE:
                return load_snapshot(given)
    path = trace_in(given, "reading the memory of")
    if path is None:
        raise ArgumentError(f"{given} has traces of several ranks: name one of them")
    return recorded_memory(load(path))
