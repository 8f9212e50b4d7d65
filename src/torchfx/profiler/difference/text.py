"""A difference as text, JSON or Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from torchfx.profiler.difference.difference import Difference
from torchfx.profiler.difference.job_sections import job_sections
from torchfx.profiler.difference.jobs import JobDifference
from torchfx.profiler.difference.layout import table
from torchfx.profiler.difference.sections import Section, sections_of
from torchfx.profiler.wording import wrapped

__all__ = ["FORMATS", "as_json", "as_markdown", "as_text"]


def as_text(found: Difference | JobDifference, *, verbose: bool = False, width: int = 80) -> str:
    """Return plain text, one section after another.

    Args:
        found: what to show.
        verbose: list everything, with whole names.
        width: of the terminal; names are shortened and lines broken to fit into it, down to 76 characters.
    """
    parts = _sections(found, verbose=verbose)
    return "\n\n".join(_text(part, max(width, _NARROWEST), whole=verbose) for part in parts)


def as_markdown(found: Difference | JobDifference, *, verbose: bool = False, width: int = 0) -> str:
    """Return Markdown with tables; names are whole, and no width matters."""
    return "\n\n".join(_markdown(part) for part in _sections(found, verbose=verbose))


def as_json(found: Difference | JobDifference, *, verbose: bool = False, width: int = 0) -> str:
    """Return JSON; it always holds everything."""
    return json.dumps(found.to_dict(), indent=2)


def _sections(found: Difference | JobDifference, *, verbose: bool) -> list[Section]:
    if isinstance(found, JobDifference):
        return job_sections(found, verbose=verbose)
    return sections_of(found, verbose=verbose)


FORMATS: Final[dict[str, Callable[..., str]]] = {"text": as_text, "json": as_json, "markdown": as_markdown}


_NARROWEST: Final = 76
"""The numbers of one row may take that many columns, and they are never cut."""

_WIDEST: Final = 110
"""Sentences longer than this are hard to read, however wide the terminal."""


def _text(part: Section, width: int, *, whole: bool) -> str:
    indent = 2 if part.title else 0
    rows = [part.header, *part.rows] if part.title and part.rows else part.rows
    lines = table(rows, width - indent, right=part.right, below=part.below, pair=part.pair, whole=whole)
    sentences = [line for text in part.sentences for line in wrapped(text, min(width, _WIDEST), indent)]
    if not part.title:  # the head: what is compared, then the verdict
        return "\n".join([*lines, "", *sentences])
    return "\n".join([part.title, *sentences, *(" " * indent + line for line in lines)])


def _markdown(part: Section) -> str:
    lines = [f"## {part.title}", ""] if part.title else ["# Difference", ""]
    for sentence in part.sentences:
        lines += [_escaped(sentence), ""]
    if part.rows:
        marks = ["---:" if i in part.right else "---" for i in range(len(part.header))]
        lines += [
            _line(part.header),
            _line(marks),
            *(_line([_escaped(str(cell)) for cell in row]) for row in part.rows),
        ]
    return "\n".join(lines).rstrip()


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    for character in "\\|<*_`#":
        text = text.replace(character, "\\" + character)
    return text
