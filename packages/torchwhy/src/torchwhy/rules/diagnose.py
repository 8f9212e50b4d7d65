"""Run rules over a trace: those about trust first, since they may deny the others their ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchwhy.finding import CONFIDENCES, Finding, identified
from torchwhy.plugins import in_a_line
from torchwhy.rules.catalogue import all_rules, not_loaded, thresholds_by_slug
from torchwhy.rules.rule import Rule, setting
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.model.trace import Trace

__all__ = ["Diagnosis", "by_weight", "diagnose", "look", "turn"]


@dataclass(frozen=True)
class Diagnosis:
    """The findings of all rules in a trace.

    Attributes:
        findings: those with the most time at stake first.
        muted: rules that did not run, by code: why.
        failed: rules that broke off, by code, and entry points that could not be loaded, by name: the error in a line.
        asked: codes of the rules on traces that were to look; some of them may be muted or failed.
    """

    findings: tuple[Finding, ...]
    muted: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()


def diagnose(
    trace: Trace,
    *,
    rules: Iterable[Rule] | None = None,
    thresholds: Mapping[str, Mapping[str, Any]] | None = None,
) -> Diagnosis:
    """Let rules look at a trace.

    Args:
        trace: what to look at.
        rules: which; all where None.
        thresholds: values by rule (code or slug), then by name.

    Raises:
        ArgumentError: a threshold is of no rule, or has no such name.
        ArgumentTypeError: a threshold isn't a number.
    """
    chosen = tuple(rule for rule in (all_rules() if rules is None else rules) if rule.on == "trace")
    denied = dict(trace.derived(recorded).missing)
    given = thresholds_by_slug(thresholds, chosen)
    findings: list[Finding] = []
    muted: dict[str, str] = {}
    failed = dict(not_loaded())
    with setting(given):
        # Rules that deny something run even when they aren't chosen: what they deny is not to be reported either.
        for rule in (r for r in all_rules() if r.mutes and r.on == "trace"):
            found = _found(rule, trace, failed)
            # What matters little denies nothing: with a few kernels in a hundred lost, idle time is nearly what it was.
            for serious in [finding for finding in found if finding.severity != "low"][:1]:
                denied.update(dict.fromkeys(rule.mutes - {*denied}, f"{rule.code} {rule.slug}: {serious.title}"))
            findings += found if rule in chosen else []
        for rule in (r for r in chosen if not r.mutes):
            reasons = [denied[aspect] for aspect in sorted(rule.needs) if aspect in denied]
            if reasons:
                muted[rule.code] = reasons[0]
            else:
                findings += _found(rule, trace, failed)
    return Diagnosis(identified(by_weight(findings)), muted, failed, tuple(rule.code for rule in chosen))


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Order findings as they are to be dealt with: by `turn`, then the most time at stake; of equals the surer one."""

    def place(finding: Finding) -> tuple[int, float, int, str]:
        return turn(finding), -finding.time_us, -CONFIDENCES.index(finding.confidence), finding.code

    return tuple(sorted(findings, key=place))


def turn(finding: Finding) -> int:
    """Return 0 for what makes other findings doubtful, then 1 for what has time at stake in every step.

    2 is for what happens once, such as in a cold first step, which the verdict leaves out, and 3 for what is only worth
    knowing.
    """
    if finding.severity == "info":
        return 3
    if finding.severity == "high" and not finding.time_us:
        return 0
    return 2 if finding.once else 1


def look(rule: Rule, subject: Any, thresholds: Mapping[str, Any] | None) -> tuple[list[Finding], str]:
    """Return what a rule finds and ""; where it raises, nothing and the error in a line.

    Args:
        rule, subject: what looks at what; see `Rule.check`.
        thresholds: the rule's; None for those in force.

    Raises:
        ArgumentError: a threshold has no such name.
        ArgumentTypeError: a threshold isn't a number.
    """
    looking = rule.check(subject, thresholds)
    try:
        return list(looking), ""
    except Exception as error:  # noqa: BLE001
        # Whatever it is: rules come from plugins too, and no trace is so odd that the hundred others have to be silent.
        # The user learns that it failed, from every view of the report.
        return [], in_a_line(error)


def _found(rule: Rule, trace: Trace, failed: dict[str, str]) -> list[Finding]:
    """The findings of a rule; if it fails, the error goes to `failed`."""
    found, error = look(rule, trace, None)
    if error:
        failed[rule.code] = error
    return found
