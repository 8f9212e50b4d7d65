"""Sentences that several formats say in the same words."""

from __future__ import annotations

from torchwhy.present.document import Check, FindingItem, Findings, Rules
from torchwhy.trace.meaning.frames import file_and_line
from torchwhy.wording import counted

__all__ = ["at_stake", "failed_rules", "finding_lines", "hidden_findings", "listed", "muted_rules", "place", "place_of"]


def failed_rules(rules: Rules) -> list[str]:
    """Return a sentence for each rule that raised an error, and for each package whose rules could not be loaded."""
    return [
        f"Rule {rule.code} {rule.slug} could not look: {rule.reason}"
        if rule.slug
        else f"The rules of {rule.code} could not be loaded: {rule.reason}"
        for rule in rules.outcomes
        if rule.outcome == "failed"
    ]


def muted_rules(rules: Rules) -> list[str]:
    """Return a sentence for each reason why rules were not asked."""
    reasons: dict[str, list[str]] = {}
    for rule in rules.outcomes:
        if rule.outcome == "muted":
            reasons.setdefault(rule.reason, []).append(rule.code)
    return [f"Not asked: {', '.join(codes)}; {reason}." for reason, codes in reasons.items()]


def listed(findings: Findings, verbose: bool) -> list[FindingItem]:
    """Return the findings of a view: without `verbose` not those that are only good to know."""
    return [item for item in findings.items if verbose or item.severity != "info"]


def hidden_findings(findings: Findings, verbose: bool) -> str:
    """Return how many findings a view leaves out, in a sentence; "" for none."""
    hidden = len(findings.items) - len(listed(findings, verbose))
    return f"{counted(hidden, 'informational finding is', 'informational findings are')} left out." if hidden else ""


def at_stake(findings: Findings, verbose: bool) -> list[str]:
    """Return what the time at stake is, in a sentence; nothing where no finding of the view has one."""
    shown = [item for item in listed(findings, verbose) if item.time_us and item.severity != "info"]
    overlap = "; findings overlap, so these times don't add up" if len(shown) > 1 else ""
    return [f"At stake is the most that the fix can save{overlap}."] if shown else []


def finding_lines(item: FindingItem) -> list[str]:
    """Return a finding in lines, for formats that have room for a text only."""
    lines = [f"{item.title} ({item.severity})"]
    lines += [item.stake] if item.stake else []
    lines += [f"- {one.name}" + (f" at {one.line}" if one.line else "") for one in item.evidence]
    return [*lines, *([f"Why: {item.why}"] if item.why else []), *([f"Fix: {item.fix}"] if item.fix else [])]


def place(check: Check) -> str:
    """Return the file and line of a check; "" where they are unknown."""
    return f"{check.file}:{check.line}" if check.line else check.file


def place_of(item: FindingItem) -> tuple[str, int | None]:
    """Return file and line of the first program line in a finding, or ""."""
    return next(filter(None, (file_and_line(one.line) for one in item.evidence)), ("", None))
