"""`torchwhy cut`."""

from __future__ import annotations

from pathlib import Path

import typer

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.cli.traces import trace_in
from torchwhy.cli.units import seconds
from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError
from torchwhy.present.formats import check_format
from torchwhy.present.written_files import cut_trace
from torchwhy.trace.model.cut import cut

__all__ = ["run"]


def run(trace: str, output: Path, steps: str | None, window: str | None, categories: tuple[str, ...], form: str) -> int:
    """Write a part of a trace; return 0, 2 for misuse, 3 for what cannot be read or written."""
    try:
        check_format(form)
        path = trace_in(trace, "cutting")
        if path is None:
            return complain(f"{trace} has the traces of several ranks: name one of them", 2)
        names = tuple(name for text in categories for name in text.split(",") if name) or None
        with patience(f"reading {trace}"):
            made = cut(path, output, window=_window(window), steps=steps, categories=names)
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot write {output}: {error.strerror or error}", 3)
    show(cut_trace(made), form)
    return 0


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    start, _, end = text.partition("-")
    try:
        return 1e6 * seconds(start, "us"), 1e6 * seconds(end, "us")
    except typer.BadParameter:
        raise ArgumentError(
            f"--window must be START-END in microseconds or with units, as in 1000-2500 or 1ms-2.5ms, got {text!r}"
        ) from None
