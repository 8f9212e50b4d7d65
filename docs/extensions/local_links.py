"""Keeps links to headings of the same page in the Markdown pages: their writer reads only links marked as internal."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def _mark(app: Sphinx, document: nodes.document) -> None:
    for link in document.findall(nodes.reference):
        if "refid" in link:
            link["internal"] = True


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", _mark)
    return {"parallel_read_safe": True}
