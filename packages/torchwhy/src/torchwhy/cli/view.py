"""`torchwhy view`."""

from __future__ import annotations

import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from torchwhy.cli.console import answer, complain, patience, say
from torchwhy.cli.traces import trace_in
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.loading.read import read_trace
from torchwhy.trace.file.recorders.database import MAGIC
from torchwhy.trace.file.remote import is_url
from torchwhy.trace.file.source import Chunks
from torchwhy.trace.model.trace import Trace
from torchwhy.view.perfetto import PERFETTO, carried_viewer, stretch_around, time_ns
from torchwhy.view.server import TraceServer, ViewerServer

__all__ = ["run"]

WAIT_S: Final = 600.0
"""How long the page is served at most."""

QUIET_S: Final = 30.0
"""A viewer served from here loads further parts of itself after it has the trace; the server ends after this time (s)
without a request."""


def run(trace: str, at: str | None, opens: bool, offline: bool) -> int:
    """Serve a trace until a viewer has it; return 0, 2 for misuse, 3 if it cannot be read or no viewer took it."""
    try:
        if trace == "-":
            raise ArgumentError("view hands over a file: TRACE must be a path, got -")  # noqa: TRY301
        if is_url(trace):
            raise ArgumentError(f"view hands over a file of this machine: TRACE must be a path, got {trace}")  # noqa: TRY301
        path = trace_in(trace, "viewing")
        if path is None:
            return complain(f"{trace} has the traces of several ranks: torchwhy merge makes one timeline of them", 2)
        end = _end_of_address(path, at)
        if _is_database(path):
            return complain(
                f"Perfetto's viewer reads no databases: torchwhy export {trace} --to perfetto makes a file", 2
            )
        with ExitStack() as servers:
            viewer = servers.enter_context(ViewerServer(carried_viewer())) if offline else None
            served = servers.enter_context(TraceServer(Path(path), (viewer.origin if viewer else PERFETTO) + end))
            answer(f"{served.url}\n")
            if opens and not webbrowser.open(served.url):
                say("no browser could be started: open the address above in one on this machine")
            if not served.wait(WAIT_S):
                return complain(f"no viewer took the trace within {WAIT_S / 60:.0f} minutes", 3)
            say("the viewer has the trace")
            if viewer:
                viewer.wait_until_quiet(QUIET_S)
    except ArgumentError as error:
        return complain(error, 2)
    except (TorchWhyError, OSError) as error:
        return complain(error, 3)
    except KeyboardInterrupt:
        return 130
    return 0


def _end_of_address(path: str, at: str | None) -> str:
    """What goes behind the viewer's address to show a moment; at least the beginning of the file is read."""
    if at is None:
        with Chunks(path) as chunks:
            next(iter(chunks))
        return ""
    moment = time_ns(at)
    with patience(f"reading {path}"):
        return stretch_around(read_trace(path, Trace), moment)


def _is_database(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
