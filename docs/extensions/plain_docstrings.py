"""Reads this repository's docstrings: Google's sections around plain text, in which an indented block is code.

In reStructuredText such a block would be a quotation, and `|` or `*` in a sentence would be markup. This runs before
napoleon.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Examples|Example|Yields|Note|Warning|Shape|Source|References):$")
CODE = re.compile(r"(`+[^`]+`+)")
NAME = re.compile(r"`[\w.]+(\(\))?`")
MARKUP = re.compile(r"([*|\\])|(?<=\w)(_)(?!\w)")
NOTHING = "\\ "
"""A line that shows nothing. Napoleon takes the text before a colon for a type, but only in the first line."""


def plain(lines: list[str], what: str = "") -> list[str]:
    """Return a docstring's lines as reStructuredText.

    Args:
        lines: as autodoc has them, without common indentation.
        what: the kind of object that has the docstring, in autodoc's words, such as "property".
    """
    found: list[str] = []
    section = ""
    block: int | None = None  # the indentation of the code block that the line stands in
    for index, line in enumerate(lines):
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if not text:
            found.append("")
            continue
        if depth == 0 and SECTION.match(text):
            section, block = text[:-1], None
            found.append(line)
            if section in {"Returns", "Yields"}:
                found.append(f"    {NOTHING}")
            continue
        if depth == 0:
            section, block = "", None
        if section in {"Examples", "Example"}:
            found.append(line)
            continue
        if block is not None and depth >= block:
            found.append(line)
            continue
        block = None
        if (
            depth
            and not section
            and index
            and not lines[index - 1].strip()
            and not text.startswith((">>>", "- ", "* "))
        ):
            found += ["::", ""]
            block = depth
            found.append(line)
            continue
        found.append(escaped(line))
    return [NOTHING, *found] if what in {"attribute", "data", "property"} else found


def escaped(line: str) -> str:
    """Return a line of prose in which only backquotes are markup."""
    start = re.match(r"\s*(?:[-*] )?", line)
    kept = start.group() if start else ""
    parts = CODE.split(line[len(kept) :])
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = MARKUP.sub(lambda found: "\\" + found.group(), part)
            continue
        if not part.startswith("``") and not NAME.fullmatch(part):
            parts[place] = f"`{part}`"  # an expression is code
        if parts[place + 1][:1].isalnum():
            parts[place] += "\\ "  # a plural's ending
    return kept + "".join(parts)


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines, what)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx, before napoleon's own listener."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True}
