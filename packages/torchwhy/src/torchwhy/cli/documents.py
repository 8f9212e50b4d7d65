"""Printing a document, drawn for what stdout is."""

from __future__ import annotations

import sys
from dataclasses import replace

from torchwhy.cli.console import answer, shows_colour, shows_unicode, width
from torchwhy.present.document import Document
from torchwhy.present.formats import render
from torchwhy.present.options import Options
from torchwhy.present.style import Style

__all__ = ["show", "terminal_style"]

WIDEST = 10_000


def terminal_style() -> Style:
    """How to draw text for what stdout is."""
    return Style(width(), shows_colour(sys.stdout), shows_unicode(sys.stdout))


def show(document: Document, form: str, *, verbose: bool = False, whole: bool = False) -> None:
    """Print a document in one of `present.formats.FORMATS`.

    Args:
        document: what to print.
        form: the format.
        verbose: whether to print what is left out by default, too.
        whole: whether to shorten no name where stdout is not a terminal: another program may read it.

    Raises:
        ArgumentError: there is no such format.
    """
    style = terminal_style()
    if whole and not sys.stdout.isatty():
        style = replace(style, width=WIDEST)
    answer(render(document, form, Options(style, verbose)))
