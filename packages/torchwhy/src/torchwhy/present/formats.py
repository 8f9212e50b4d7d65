"""The renderers by name: the choices of `--format`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from torchwhy.errors import ArgumentError
from torchwhy.present.document import Document
from torchwhy.present.options import Options

__all__ = ["FORMATS", "check_format", "render"]

FORMATS: Final = ("text", "json", "markdown", "html", "sarif", "junit", "github", "agent")
"""Each is a module of this package with a function `render(documents, options)`, loaded when it is requested: commands
are to start at once."""


def check_format(form: str) -> str:
    """Return a format's name.

    Raises:
        ArgumentError: no format has that name.
    """
    if form not in FORMATS:
        raise ArgumentError(f"--format must be one of {', '.join(FORMATS)}, got {form!r}")
    return form


def render(documents: Document | Sequence[Document], form: str = "text", options: Options | None = None) -> str:
    """Draw one document or several; the result ends with a newline.

    Args:
        documents: what to draw.
        form: one of `FORMATS`.
        options: width, colour, whether everything is shown, what is a failure.

    Raises:
        ArgumentError: there is no such format.
    """
    several = (documents,) if isinstance(documents, Document) else tuple(documents)
    renderer = import_module(f"{__package__}.{check_format(form)}")
    drawn: str = renderer.render(several, options or Options())
    return drawn
