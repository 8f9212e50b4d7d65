"""A difference as text, JSON or Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from torchfx.profiler.difference.difference import Difference
from torchfx.profiler.difference.sections import Section, sections_of

__all__ = ["FORMATS", "as_json", "as_markdown", "as_text"]


def as_text(found: Difference, *, verbose: bool = False) -> str:
    """Return plain text, one section after another."""
    return "\n\n".join(_text(part) for part in sections_of(found, verbose=verbose))


def as_markdown(found: Difference, *, verbose: bool = False) -> str:
    """Return Markdown with tables."""
    return "\n\n".join(_markdown(part) for part in sections_of(found, verbose=verbose))


def as_json(found: Difference, *, verbose: bool = False) -> str:
    """Return JSON; it always holds everything."""
    return json.dumps(found.to_dict(), indent=2)


FORMATS: Final[dict[str, Callable[..., str]]] = {"text": as_text, "json": as_json, "markdown": as_markdown}


def _text(part: Section) -> str:
    indent = "  " if part.title else ""
    table = _aligned(part, header=bool(part.title))
    if not part.title:  # the head: what is compared, then the verdict
        return "\n".join([*table, "", *part.sentences])
    return "\n".join([part.title, *(indent + line for line in (*part.sentences, *table))])


def _aligned(part: Section, *, header: bool) -> list[str]:
    if not part.rows:
        return []
    rows = [part.header, *part.rows] if header else list(part.rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(part.header))]
    return ["  ".join(_cell(row[i], widths[i], i in part.right) for i in range(len(row))).rstrip() for row in rows]


def _cell(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)


def _markdown(part: Section) -> str:
    lines = [f"## {part.title}", ""] if part.title else ["# Difference", ""]
    for sentence in part.sentences:
        lines += [_escaped(sentence), ""]
    if part.rows:
        marks = ["---:" if i in part.right else "---" for i in range(len(part.header))]
        lines += [_line(part.header), _line(marks), *(_line([_escaped(cell) for cell in row]) for row in part.rows)]
    return "\n".join(lines).rstrip()


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    for character in "\\|<*_`#":
        text = text.replace(character, "\\" + character)
    return text
