"""Writes a page for each example program of a package: its README, if it has one, and the source of each file.

A page links to it as `programs/NAME.md`; NAME is the program's folder, or its file without suffix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from reference_pages import before_reading, write


def pages(examples: Path) -> dict[str, str]:
    """Return the text of each page by its file's name.

    Args:
        examples: the folder that holds a folder or a file per example.
    """
    found = {}
    for place in sorted(examples.iterdir()):
        sources = [place] if place.suffix == ".py" else sorted(place.glob("*.py"))
        if not sources:
            continue
        readme = place / "README.md"
        head = readme.read_text(encoding="utf-8") if readme.is_file() else f"# {place.stem}\n"
        parts = [f"---\norphan: true\n---\n\n{head.rstrip()}\n"]
        for source in sources:
            name = source.relative_to(examples).as_posix()
            shown = f"```{{literalinclude}} ../../examples/{name}\n:language: python\n```\n"
            parts.append(f"## {source.name}\n\n`packages/{examples.parent.name}/examples/{name}`:\n\n{shown}")
        found[f"{place.stem}.md"] = "\n".join(parts)
    return found


def _write_all(app: Sphinx) -> None:
    for name, text in pages(Path(app.srcdir).parent / "examples").items():
        write(Path(app.srcdir) / "programs" / name, text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
