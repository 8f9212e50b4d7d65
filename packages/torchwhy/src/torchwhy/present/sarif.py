"""A document as SARIF 2.1.0, which code hosts show next to a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from torchwhy.present.document import Caveat, Check, Checks, Document, FindingItem, Findings, Rules, VerdictBlock
from torchwhy.present.json import encoded
from torchwhy.present.options import Options
from torchwhy.present.phrases import failed_rules, place_of
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.rule import Rule
from torchwhy.wording import safe

__all__ = ["render"]

_LEVELS: Final = {"high": "error", "medium": "warning", "low": "note", "info": "note"}
_NAMES: Final = 5
"""Logical locations of a result; code hosts show few."""


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the log: a run for each document, a result for each finding and for each limit that was not kept."""
    return encoded(
        {
            "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
            "version": "2.1.0",
            "runs": [_run(document) for document in documents],
        }
    )


def _run(document: Document) -> dict[str, Any]:
    findings = [item for block in document.blocks if isinstance(block, Findings) for item in block.items]
    checks = [check for block in document.blocks if isinstance(block, Checks) for check in block.items]
    outcomes = [rule for block in document.blocks if isinstance(block, Rules) for rule in block.outcomes]
    mentioned = {rule.code for rule in outcomes if rule.outcome == "asked"} | {item.code for item in findings}
    rules = [rule for rule in all_rules() if rule.code in mentioned] if mentioned else []
    places = {rule.code: place for place, rule in enumerate(rules)}
    verdict = next((block for block in document.blocks if isinstance(block, VerdictBlock)), None)
    said = {"verdict": safe(verdict.kind), "sentence": safe(verdict.sentence)} if verdict else {}
    return {
        "tool": {"driver": {"name": "torchwhy", "rules": [_rule(rule) for rule in rules]}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notices(document))}],
        "results": [_finding(item, document, places) for item in findings]
        + [_check(check, document) for check in checks if check.outcome in ("failed", "error")],
        "properties": {"command": document.command, **said},
    }


def _notices(document: Document) -> Iterator[dict[str, Any]]:
    for block in document.blocks:
        if isinstance(block, Rules):
            for rule in block.outcomes:
                if rule.outcome == "muted":
                    yield _notice("note", f"{rule.code} {rule.slug} was not asked: {rule.reason}")
            for sentence in failed_rules(block):
                yield _notice("error", sentence)
        elif isinstance(block, Caveat):
            yield _notice("warning", f"{block.label}: {block.text}")
        elif isinstance(block, Checks):
            for check in block.items:
                if check.outcome == "skipped":
                    yield _notice("note", f"{check.name} was not checked: {check.text}")


def _notice(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": safe(text)}}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.documentation},
        "help": {"text": f"{rule.documentation}\n\nSource: {rule.source}"},
        "properties": {"slug": rule.slug},
    }


def _finding(item: FindingItem, document: Document, places: dict[str, int]) -> dict[str, Any]:
    stake = f" {item.stake}." if item.stake else ""
    text = safe(f"{item.title}.{stake} {item.why} {item.fix}".strip())
    trace: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(document.file)}}}
    file, line = place_of(item)
    source: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    if line:
        source["region"] = {"startLine": line}
    found: dict[str, Any] = {
        "ruleId": item.code,
        "level": _LEVELS[item.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": source} if file else trace],
        **({"relatedLocations": [trace]} if file else {}),
        "properties": {"severity": item.severity, "confidence": item.confidence, "time_us": item.time_us},
    }
    if item.id:  # by which code hosts know a finding again
        found["partialFingerprints"] = {"torchwhyFinding/v1": item.id}
    if item.code in places:
        found["ruleIndex"] = places[item.code]
    names = dict.fromkeys(safe(one.line or one.name) for one in item.evidence)  # they must be distinct
    logical = [{"fullyQualifiedName": name, "kind": "function"} for name in names if name][:_NAMES]
    if logical:
        found["locations"][0]["logicalLocations"] = logical
    return found


def _check(check: Check, document: Document) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(check.file or document.file)}}
    if check.line:
        place["region"] = {"startLine": check.line}
    text = "\n".join(safe(line) for line in (check.text, *check.evidence))
    return {
        "ruleId": safe(check.name),
        "level": "error",
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    """Return a relative reference for a relative path, a file URI for an absolute one."""
    if not file or file == "standard input":
        return "stdin"
    path = Path(file).expanduser()
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
