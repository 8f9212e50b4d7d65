"""`torchfx memory`."""

from __future__ import annotations

import sys

from torchfx.cli.streams import answer, complain, patience, shows_colour, shows_unicode, width
from torchfx.errors import ArgumentError, TraceError
from torchfx.profiler.allocator.snapshot import load_snapshot
from torchfx.profiler.present.formats import check_format, render
from torchfx.profiler.present.memory_snapshot import memory_snapshot
from torchfx.profiler.present.options import Options
from torchfx.profiler.present.style import Style

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
    style = Style(width(), shows_colour(sys.stdout), shows_unicode(sys.stdout))
    answer(render(document, form, Options(style, verbose)))
    return 0
