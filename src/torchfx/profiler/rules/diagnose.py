"""Run rules over a trace: those about trust first, since they may deny the others their ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchfx.profiler.rules.catalogue import all_rules
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import Rule
from torchfx.profiler.trace.trace import Trace

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True)
class Diagnosis:
    """What rules say of a trace.

    Attributes:
        findings: those with the most time at stake first.
        muted: rules that did not run, by code: why.
    """

    findings: tuple[Finding, ...]
    muted: Mapping[str, str]


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
    """
    chosen = tuple(rule for rule in (all_rules() if rules is None else rules) if rule.on == "trace")
    denied = {} if trace.has_gpu else dict.fromkeys(("gpu", "idle", "order"), "no work on a device was recorded")
    given = {key.lower(): value for key, value in (thresholds or {}).items()}
    findings: list[Finding] = []
    muted: dict[str, str] = {}
    # Rules that deny something run even when they aren't chosen: what they deny is not to be reported either.
    for rule in (r for r in all_rules() if r.mutes and r.on == "trace"):
        found = list(rule.check(trace, _thresholds(rule, given)))
        if found:
            denied.update(dict.fromkeys(rule.mutes - {*denied}, f"{rule.code} {rule.slug}: {found[0].title}"))
        findings += found if rule in chosen else []
    for rule in (r for r in chosen if not r.mutes):
        reasons = [denied[aspect] for aspect in sorted(rule.needs) if aspect in denied]
        if reasons:
            muted[rule.code] = reasons[0]
        else:
            findings += rule.check(trace, _thresholds(rule, given))
    return Diagnosis(tuple(sorted(findings, key=_weight)), muted)


def _thresholds(rule: Rule, given: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return given.get(rule.slug, given.get(rule.code.lower(), {}))


def _weight(finding: Finding) -> tuple[bool, float, str]:
    return finding.severity == "info", -finding.time_us, finding.code
