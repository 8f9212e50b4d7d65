"""Printing a document, drawn for what stdout is."""

from __future__ import annotations

import sys

from torchfx.cli.streams import answer, shows_colour, shows_unicode, width
from torchfx.profiler.present.document import Document
from torchfx.profiler.present.formats import render
from torchfx.profiler.present.options import Options
from torchfx.profiler.present.style import Style

__all__ = ["show", "terminal_style"]


def terminal_style() -> Style:
    """How to draw text for what stdout is."""
    return Style(width(), shows_colour(sys.stdout), shows_unicode(sys.stdout))


def show(document: Document, form: str, *, verbose: bool = False) -> None:
    """Print a document in one of `present.formats.FORMATS`.

    Raises:
        ArgumentError: there is no such format.
    """
    answer(render(document, form, Options(terminal_style(), verbose)))
