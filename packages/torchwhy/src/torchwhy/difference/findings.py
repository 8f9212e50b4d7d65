"""Findings of both sides: fixed, new, worse, better, unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from torchwhy.difference.conditions import device_of
from torchwhy.difference.costs import Side
from torchwhy.finding import Finding
from torchwhy.rules.catalogue import all_rules, thresholds_by_slug
from torchwhy.rules.diagnose import Diagnosis, look

__all__ = ["FATES", "Fate", "fates_of"]

FATES: Final = ("fixed", "new", "worse", "better", "unchanged", "unknown")
"""unknown: on one side only, and on the other the rule couldn't look (no device recorded, clocks disagree, ...), or it
ran on another device."""


NEARLY: Final = 0.5
"""A finding is fixed when its share of the time is below this part of the rule's threshold."""

SHARES: Final = ("share", "of_window", "cpu_share")
"""How rules call the share of the time from which on they speak."""


@dataclass(frozen=True)
class Fate:
    """A finding of one side, or the same one of both.

    Attributes:
        state: one of `FATES`.
        finding: as B has it; as A has it where B doesn't.
        us: time at stake per step on A and on B; 0 where a side doesn't have it.
        note: why it is unknown, or on which side it is below the rule's threshold.
        ids: of the finding on A and on B; "" where a side doesn't have it.
    """

    state: str
    finding: Finding
    us: tuple[float, float]
    note: str = ""
    ids: tuple[str, str] = ("", "")


def fates_of(
    a: Side,
    b: Side,
    diagnoses: tuple[Diagnosis, ...],
    thresholds: Mapping[str, Mapping[str, Any]],
    step_us: float,
    noise: float,
) -> tuple[Fate, ...]:
    """Match what the rules found on both sides.

    Args:
        a, b: the sides.
        diagnoses: what the rules say of A and of B.
        thresholds: those the rules had, where they weren't their own.
        step_us: the longer step of the two.
        noise: of step times, as a fraction; a finding's time must change by more.
    """
    given = thresholds_by_slug(thresholds)
    found = []
    for first, second in _matched(*(diagnosis.findings for diagnosis in diagnoses)):
        below = error = ""
        if first and not second:
            second, error = _nearly(first, b, diagnoses[1], given)
            below = "on B below the rule's threshold" if second else ""
        elif second and not first:
            first, error = _nearly(second, a, diagnoses[0], given)
            below = "on A below the rule's threshold" if first else ""
        fate = _fate(first, second, (a, b), diagnoses, step_us, max(noise, 0.1), error)
        ids = first.id if first else "", second.id if second else ""
        found.append(replace(fate, note=below or fate.note, ids=ids))
    order = {state: i for i, state in enumerate(FATES)}
    return tuple(sorted(found, key=lambda fate: (order[fate.state], -max(fate.us), fate.finding.code)))


def _fate(
    first: Finding | None,
    second: Finding | None,
    sides: tuple[Side, Side],
    diagnoses: tuple[Diagnosis, ...],
    step_us: float,
    noise: float,
    error: str,
) -> Fate:
    us = _per_step(first, sides[0]), _per_step(second, sides[1])
    if first and second:
        change = us[1] - us[0]
        matters = abs(change) > max(0.01 * step_us, noise * max(us))
        return Fate(("worse" if change > 0 else "better") if matters else "unchanged", second, us)
    one = second or first
    assert one is not None
    other = diagnoses[0 if second else 1]
    reason = other.muted.get(one.code, "") or other.failed.get(one.code, "") or error
    if reason:
        return Fate("unknown", one, us, f"could not be checked on {'A' if second else 'B'}: {reason}")
    if device_of(sides[0]) != device_of(sides[1]):
        return Fate("unknown", one, us, f"only on {'B' if second else 'A'}, which ran on another device")
    return Fate("new" if second else "fixed", one, us)


def _nearly(
    finding: Finding, side: Side, diagnosis: Diagnosis, given: Mapping[str, Mapping[str, Any]]
) -> tuple[Finding | None, str]:
    """The same on the side that doesn't have it, if only its share of the time is a little too small there.

    Without this a finding just above a threshold on one side and just below on the other would count as fixed.

    Returns:
        It, or None; and the error of a rule that can't look with a lower threshold, or "".
    """
    known = {rule.code: rule for rule in all_rules()}.get(finding.code)
    if known is None or known.mutes or known.on != "trace" or finding.code in {*diagnosis.muted, *diagnosis.failed}:
        return None, ""
    own = given.get(known.slug, {})
    lower = {name: own.get(name, value) * NEARLY for name, value in known.thresholds.items() if name in SHARES}
    if not lower or max(lower.values()) > 0.25:  # from one half on it is the state of a program, not a symptom
        return None, ""
    there, error = look(known, side.trace, {**own, **lower})
    same = [item for item in there if _subject(item) == _subject(finding)]
    if not same and not any(item.code == finding.code for item in diagnosis.findings):
        same = there
    return same[0] if same else None, error


def _matched(a: tuple[Finding, ...], b: tuple[Finding, ...]) -> list[tuple[Finding | None, Finding | None]]:
    """Pairs about the same events first, then about the same subject, then of one rule, then those left over."""
    left, pairs = list(b), []
    alone: list[Finding] = []
    for key in (_event, _subject, _rule):
        open_ = list(a) if key is _event else alone
        alone = []
        for finding in open_:
            other = next((item for item in left if key(item) == key(finding)), None)
            if other is None:
                alone.append(finding)
            else:
                left.remove(other)
                pairs.append((finding, other))
    return [*pairs, *((finding, None) for finding in alone), *((None, finding) for finding in left)]


def _event(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.evidence[0].name if finding.evidence else ""


def _subject(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.subject


def _rule(finding: Finding) -> tuple[str, str]:
    return finding.code, ""


def _per_step(finding: Finding | None, side: Side) -> float:
    """Time at stake in one step: the window of a finding may hold several, and a cold one."""
    if finding is None:
        return 0.0
    window = side.trace.window
    if not side.rounds.are_steps or not window.us:
        return finding.time_us
    steps = len(side.trace.steps_found) * (1 if finding.window == window else finding.window.us / window.us)
    return finding.time_us / max(steps, 1)
