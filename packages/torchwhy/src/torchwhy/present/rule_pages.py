"""The answers of `torchwhy rule`: a page for each rule from its documentation, and the list of all, as documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final

import msgspec

from torchwhy.present.document import Block, Cell, Code, Column, Document, Table, Text, Words, rows_of
from torchwhy.rules.rule import ASPECTS, Rule
from torchwhy.schema import SCHEMA

__all__ = ["RuleData", "RuleList", "rule_list", "rule_page", "topic"]

_LABELS: Final = ("Sees", "Costs", "Fix", "Known problems")
"""Paragraphs of a rule's documentation that begin with a label."""


class RuleData(msgspec.Struct, frozen=True):
    """A rule; `needs` and `mutes` are names of aspects of a trace (`torchwhy.rules.rule.ASPECTS`)."""

    schema: int
    code: str
    slug: str
    title: str
    documentation: str
    source: str
    thresholds: dict[str, float]
    needs: tuple[str, ...]
    mutes: tuple[str, ...]


class RuleList(msgspec.Struct, frozen=True):
    """All rules."""

    schema: int
    rules: tuple[RuleData, ...]


def _data(rule: Rule) -> RuleData:
    return RuleData(
        SCHEMA,
        rule.code,
        rule.slug,
        rule.title,
        rule.documentation,
        rule.source,
        rule.thresholds,
        tuple(sorted(rule.needs)),
        tuple(sorted(rule.mutes)),
    )


def rule_page(rule: Rule) -> Document:
    """Return what a rule sees, what that costs, how to fix it, and its settings."""
    return Document(f"{rule.code} {rule.slug}", tuple(_blocks(rule)), _data(rule), command="rule")


def _blocks(rule: Rule) -> Iterator[Block]:
    for paragraph in rule.documentation.split("\n\n"):
        text = " ".join(paragraph.split())
        label, colon, rest = text.partition(": ")
        yield Text(rest, label) if colon and label in _LABELS else Text(text)
    if rule.needs:
        yield Text(f"Runs only where: {_aspects(rule.needs)}.")
    if rule.mutes:
        yield Text(f"Where it finds something, it mutes the rules that need this: {_aspects(rule.mutes)}.")
    if rule.thresholds:
        settings = (f"{name} = {_toml(value)}" for name, value in rule.thresholds.items())
        yield Text("Thresholds, with their defaults, as pyproject.toml sets them:")
        yield Code((f"[tool.torchwhy.rules.{rule.slug}]", *settings), "toml")
    yield Text(f"To leave it out: --ignore {rule.code}, or in pyproject.toml:")
    yield Code(("[tool.torchwhy.rules]", f'ignore = ["{rule.code}"]'), "toml")
    yield Text(rule.source, "Source")


def _aspects(names: Iterable[str]) -> str:
    return "; ".join(ASPECTS[name] for name in sorted(names))


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def rule_list(rules: Iterable[Rule]) -> Document:
    """Return all rules by family."""
    families: dict[str, list[Rule]] = {}
    for rule in rules:
        families.setdefault(rule.family, []).append(rule)
    return Document(
        "",
        (
            *(_family(letter, members) for letter, members in families.items()),
            Text("torchwhy rule CODE explains a rule: what it sees, what that costs, how to fix it.", look="dim"),
        ),
        RuleList(SCHEMA, tuple(_data(rule) for members in families.values() for rule in members)),
        command="rule",
    )


def _family(letter: str, rules: list[Rule]) -> Table:
    width = max(len(rule.slug) for rule in rules)
    cells: list[tuple[Cell, ...]] = [(f"{rule.code:<4}", f"{rule.slug:<{width}}", Words(rule.title)) for rule in rules]
    return Table((Column("code"), Column("name"), Column("symptom")), rows_of(cells), f"{letter}  {topic(rules)}")


def topic(rules: list[Rule]) -> str:
    """Return a family's topic: the first line of its package's docstring, without a leading "B: " or "Family B, "."""
    package = import_module(rules[0].function.__module__.rpartition(".")[0] or rules[0].function.__module__)
    about = (package.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    about = re.sub(rf"^(Family )?{rules[0].family}[:,] ", "", about)
    return about if "." in about.split(":")[0] else about[:1].upper() + about[1:]
