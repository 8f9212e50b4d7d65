"""The report as SARIF 2.1.0, which code hosts show beside a change."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from torchfx.profiler.report.failures import failures
from torchfx.profiler.rules.catalogue import all_rules
from torchfx.profiler.rules.rule import Rule
from torchfx.profiler.wording import duration

__all__ = ["sarif"]

_LEVELS: Final = {"high": "error", "medium": "warning", "low": "note", "info": "note"}


def sarif(report: dict[str, Any]) -> dict[str, Any]:
    """Return the log: a rule's documentation as its help, one result per finding.

    Args:
        report: what `describe` returns.
    """
    mentioned = {*report["ran"], *(finding["code"] for finding in report["findings"])}
    rules = [rule for rule in all_rules() if rule.code in mentioned]
    places = {rule.code: place for place, rule in enumerate(rules)}
    notices = [
        {"level": "note", "message": {"text": f"{muted['code']} {muted['slug']} was not asked: {muted['reason']}"}}
        for muted in report["muted"]
    ]
    notices += [{"level": "error", "message": {"text": sentence}} for sentence in failures(report)]
    repairs = [
        {"level": "warning", "message": {"text": f"repaired: {repair['sentence']}"}}
        for repair in report["trace"]["repairs"]
    ]
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "torchfx", "rules": [_rule(rule) for rule in rules]}},
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notices + repairs}],
                "results": [_result(finding, report, places) for finding in report["findings"]],
                "properties": {"verdict": report["verdict"]["kind"], "sentence": report["verdict"]["sentence"]},
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.documentation},
        "help": {"text": f"{rule.documentation}\n\nSource: {rule.source}"},
        "properties": {"slug": rule.slug},
    }


def _result(finding: dict[str, Any], report: dict[str, Any], places: dict[str, int]) -> dict[str, Any]:
    stake = f" At stake: {duration(finding['time_us'])} of {duration(finding['window']['duration_us'])}."
    text = f"{finding['title']}.{stake if finding['time_us'] else ''} {finding['cause']} {finding['fix']}".strip()
    found: dict[str, Any] = {
        "ruleId": finding["code"],
        "level": _LEVELS[finding["severity"]],
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(report["trace"]["file"])}}}],
        "properties": {key: finding[key] for key in ("severity", "confidence", "time_us")},
    }
    if finding["code"] in places:
        found["ruleIndex"] = places[finding["code"]]
    names = dict.fromkeys(item["own_code"] or item["name"] for item in finding["evidence"])  # they must be distinct
    places_in_code = [{"fullyQualifiedName": name, "kind": "function"} for name in names if name][:5]
    if places_in_code:
        found["locations"][0]["logicalLocations"] = places_in_code
    return found


def _uri(file: str) -> str:
    """Return a relative reference for a relative path, a file URI for an absolute one."""
    if file == "standard input":
        return "stdin"
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
