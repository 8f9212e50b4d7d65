"""`torchfx rule`."""

from __future__ import annotations

import re
import sys
import textwrap
from importlib import import_module

from torchfx.cli.streams import answer, complain, shows_colour, width
from torchfx.errors import ArgumentError
from torchfx.profiler.report.style import Style
from torchfx.profiler.rules.catalogue import all_rules, find_rule
from torchfx.profiler.rules.rule import ASPECTS, Rule
from torchfx.profiler.rules.settings import nearest

__all__ = ["FORMATS", "run"]

FORMATS = ("text", "markdown")


def run(label: str | None, form: str) -> int:
    """Print one rule's documentation, or a list of all; return 0, or 2 for an unknown rule or format."""
    if form not in FORMATS:
        return complain(f"--format must be one of {', '.join(FORMATS)}, got {form!r}", 2)
    style = Style(width(), shows_colour(sys.stdout))
    if label is None:
        answer(_list_as_markdown() if form == "markdown" else _list(style))
        return 0
    try:
        rule = find_rule(label)
    except ArgumentError:
        return complain(f"no rule is called {label!r}{nearest(label)}; `torchfx rule` lists all", 2)
    answer(_as_markdown(rule) if form == "markdown" else _text(rule, style))
    return 0


def _families() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in all_rules():
        found.setdefault(rule.family, []).append(rule)
    return found


def _family(rules: list[Rule]) -> str:
    """What a family is about: the first line of its package's docstring, without "B: " or "Family B, " before it."""
    package = import_module(rules[0].function.__module__.rpartition(".")[0] or rules[0].function.__module__)
    about = (package.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    about = re.sub(rf"^(Family )?{rules[0].family}[:,] ", "", about)
    return about if "." in about.split(":")[0] else about[:1].upper() + about[1:]


def _list(style: Style) -> str:
    slugs = max((len(rule.slug) for rule in all_rules()), default=0)
    lines = []
    for letter, rules in _families().items():
        heading = textwrap.wrap(f"{letter}  {_family(rules)}", style.width, subsequent_indent="   ")
        lines += [style.paint(line, "bold") for line in heading]
        for rule in rules:
            room = max(min(style.width, 120) - slugs - 10, 30)
            first, *rest = textwrap.wrap(rule.title, room, break_on_hyphens=False) or [""]
            lines.append(f"  {rule.code:<4}  {rule.slug:<{slugs}}  {first}")
            lines += [" " * (slugs + 10) + line for line in rest]
        lines.append("")
    return "\n".join(lines) + "torchfx rule CODE tells what a rule sees, what that costs and how to fix it.\n"


def _text(rule: Rule, style: Style) -> str:
    columns = min(style.width, 100)
    lines = [style.paint(f"{rule.code} {rule.slug}", "bold"), ""]
    for paragraph in rule.documentation.split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), columns, break_on_hyphens=False), ""]
    lines += _needs(rule, columns)
    if rule.thresholds:
        lines += ["Thresholds, with their defaults, as pyproject.toml sets them:", ""]
        lines += [*(f"    {line}" for line in _table(rule)), ""]
    lines += [f"To leave it out: --ignore {rule.code}, or in pyproject.toml:", ""]
    lines += ["    [tool.torchfx.rules]", f'    ignore = ["{rule.code}"]', ""]
    lines += textwrap.wrap(f"Source: {rule.source}", columns, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _needs(rule: Rule, columns: int) -> list[str]:
    lines = []
    if rule.needs:
        needs = "; ".join(ASPECTS[aspect] for aspect in sorted(rule.needs))
        lines += textwrap.wrap(f"Is asked only where: {needs}.", columns)
    if rule.mutes:
        mutes = "; ".join(ASPECTS[aspect] for aspect in sorted(rule.mutes))
        lines += textwrap.wrap(f"Where it finds something, rules aren't asked that need: {mutes}.", columns)
    return [*lines, ""] if lines else []


def _table(rule: Rule) -> list[str]:
    return [
        f"[tool.torchfx.rules.{rule.slug}]",
        *(f"{name} = {_toml(value)}" for name, value in rule.thresholds.items()),
    ]


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _as_markdown(rule: Rule) -> str:
    lines = [f"# {rule.code} {rule.slug}", ""]
    for paragraph in rule.documentation.split("\n\n"):
        label, colon, rest = " ".join(paragraph.split()).partition(": ")
        known = colon and label in {"Sees", "Costs", "Fix"}
        lines += [f"**{label}**: {rest}" if known else " ".join(paragraph.split()), ""]
    if rule.thresholds:
        lines += ["Thresholds, with their defaults:", "", "```toml", *_table(rule), "```", ""]
    return "\n".join([*lines, f"Source: {rule.source}"]) + "\n"


def _list_as_markdown() -> str:
    lines = []
    for letter, rules in _families().items():
        lines += [f"## {letter}: {_family(rules)}".rstrip(": "), "", "| code | name | symptom |", "| --- | --- | --- |"]
        lines += [f"| {rule.code} | {rule.slug} | {rule.title} |" for rule in rules]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
