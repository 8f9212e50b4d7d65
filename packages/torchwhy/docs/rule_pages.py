"""Writes a page for each rule from its documentation, and an index by families."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from reference_pages import before_reading, write
from torchwhy.present.rule_pages import topic
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.rule import Rule

PART = re.compile(r"^(Sees|Costs|Fix|Known problems): (.)", re.MULTILINE)
HEADINGS = {
    "Sees": "What it looks for",
    "Costs": "What it costs",
    "Fix": "How to fix it",
    "Known problems": "Known problems",
}


def page(rule: Rule) -> str:
    """Return the page of a rule."""
    prose = PART.sub(lambda found: f"## {HEADINGS[found[1]]}\n\n{found[2].upper()}", _code(rule.documentation))
    first, _, rest = prose.partition("\n")
    parts = [f"---\norphan: true\n---\n\n# {rule.code} {rule.slug}\n\n**{first}**\n{rest}\n\n"]
    if rule.thresholds:
        values = "".join(f"{name} = {value}\n" for name, value in rule.thresholds.items())
        parts.append(f"## Thresholds\n\n```toml\n[tool.torchwhy.rules.{rule.slug}]\n{values}```\n\n")
    if rule.source:
        parts.append(f"## Source\n\n{_code(rule.source)}\n")
    return "".join(parts)


def _code(text: str) -> str:
    """Return documentation as Markdown: only code in backquotes is markup."""
    return "".join(part if place % 2 else _escaped(part) for place, part in enumerate(re.split(r"(`[^`]*`)", text)))


def _escaped(text: str) -> str:
    return re.sub(r"([*_<\[\]#|])", r"\\\1", text)


def index() -> str:
    """Return the page that lists all rules by family."""
    parts = ["# Rules\n\nEach rule looks at a trace for one cause of lost time. A rule that is not sure is silent.\n\n"]
    for family, group in groupby(all_rules(), key=lambda each: each.family):
        members = list(group)
        rows = "".join(f"| {each.code} | [{each.slug}]({each.slug}.md) | {_code(each.title)} |\n" for each in members)
        parts.append(f"## {family}. {topic(members)}\n\n| code | name | finds |\n|---|---|---|\n{rows}\n")
    return "".join(parts)


def _write_all(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "rules"
    texts = {"index.md": index(), **{f"{each.slug}.md": page(each) for each in all_rules()}}
    for path, text in texts.items():
        write(folder / path, text)
    for path in folder.glob("*.md"):
        if path.name not in texts:
            path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
