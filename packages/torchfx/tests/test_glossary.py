"""The glossary of the site and the links to it."""

import re
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`")


def entries():
    """Return the terms of the glossary with their texts."""
    text = (DOCS / "glossary.md").read_text()
    blocks = re.findall(r"^```\{glossary\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [entry.split("\n", 1) for block in blocks for entry in block.strip().split("\n\n")]


LINKS = {page: LINK.findall(page.read_text()) for page in DOCS.rglob("*.md")}


def test_each_term_has_one_short_text():
    terms = Counter(term for term, _ in entries())
    assert len(terms) > 40
    assert max(terms.values()) == 1
    for term, text in entries():
        words = " ".join(text.split())
        assert words.endswith("."), term
        assert len(re.findall(r"\.(?= |$)", words)) <= 3, term


@pytest.mark.parametrize("page", [page for page, links in LINKS.items() if links], ids=lambda page: page.stem)
def test_a_page_links_known_terms_once(page):
    links = Counter(LINKS[page])
    assert set(links) <= {term for term, _ in entries()}
    assert max(links.values()) == 1


def test_some_page_links_each_term():
    assert {term for term, _ in entries()} == {term for links in LINKS.values() for term in links}
