"""Findings phrased: stake, evidence, cause and fix as every format says them, and the sentence for no findings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from torchwhy.analysis.names import VerdictKind
from torchwhy.present.document import Evidence, FindingItem, RuleOutcome, Rules
from torchwhy.report.trace_report import FailedRule, FindingEvidence, MutedRule, ReportedFinding
from torchwhy.trace.meaning.frames import code_of, line_of
from torchwhy.trace.meaning.kernels.name import short_name
from torchwhy.wording import counted, duration, often, part_of, percent

__all__ = ["finding_item", "nothing_found", "rule_outcomes"]

_LINE: Final = re.compile(r"\.py\(\d+\)")
_CERTAINTY: Final = {"high": "", "medium": "fairly sure", "low": "not sure"}


def finding_item(
    finding: ReportedFinding, zero_us: float | None, *, number: int = -1, brief: bool = False, window: str = ""
) -> FindingItem:
    """Return a finding as a document has it.

    Args:
        finding: of the report.
        zero_us: where the window begins, in the file's own time: moments are counted from there; None leaves them out.
        number: its place in the report on a trace; -1 in other reports.
        brief: leave out evidence and cause.
        window: the name of the report's own window; a finding that is about another one says which.
    """
    notes = {item.note for item in finding.evidence}
    common = notes.pop() if len(notes) == 1 and len(finding.evidence) > 1 else ""
    probably = "Probably: " if finding.cause_is == "inferred" else ""
    shown = () if brief else finding.evidence
    place, source = _place(finding.evidence)
    return FindingItem(
        code=finding.code,
        slug=finding.slug,
        title=finding.title,
        severity=finding.severity,
        confidence=finding.confidence,
        time_us=finding.time_us,
        stake=_stake(finding, window),
        certainty=_CERTAINTY[finding.confidence],
        common="" if brief else common,
        evidence=tuple(_evidence(item, common, zero_us, _target(number, i)) for i, item in enumerate(shown)),
        why="" if brief else f"{probably}{finding.cause}",
        fix=finding.fix,
        number=number,
        place=place,
        source=source,
        id=finding.id,
    )


def _place(evidence: Sequence[FindingEvidence]) -> tuple[str, str]:
    """The first line of the program that the evidence names, and its source; "" for what isn't known."""
    for item in evidence:
        for text in (item.own_code, item.name):
            if code_of(text) == "program" and _LINE.search(line := line_of(text)):
                return line, item.own_source if text == (item.own_code or item.name) else ""
    return "", ""


def _stake(finding: ReportedFinding, window: str) -> str:
    if not finding.time_us:
        return ""
    left_out = finding.window.left_out_us
    of = finding.window.duration_us - left_out
    which = f" ({finding.window.name})" if window and finding.window.name != window else ""
    which += f" (without one gap of {duration(left_out)})" if left_out else ""
    share = f" ({percent(finding.time_us / of)})" if of else ""
    stake = " at stake" if finding.severity != "info" else ""  # nothing is to be won by what is only good to know
    once = ", once only" if finding.once else ""
    amount = part_of(finding.time_us, of) if of else duration(finding.time_us)
    return f"{amount}{which}{stake}{share}{once}"


def _target(number: int, place: int) -> str:
    return f"evidence:{number}:{place}" if number >= 0 else ""


def _evidence(item: FindingEvidence, common: str, zero_us: float | None, target: str) -> Evidence:
    facts = [often(item.count)] if item.count > 1 else []
    facts += [duration(item.time_us)] if item.time_us else []
    facts += [item.note] if item.note and item.note != common else []
    details = [item.where] if item.where else []
    if item.start_us is not None and zero_us is not None:
        details.append(_moment(item.start_us - zero_us, "longest at" if item.count > 1 else "begins at"))
    return Evidence(
        name=line_of(item.short_name or short_name(item.name)),
        full_name=item.name,
        facts=", ".join(facts),
        details=", ".join(details),
        line=line_of(item.own_code),
        target=target if item.starts_us else "",
    )


def _moment(us: float, what: str) -> str:
    """When an event begins, or the longest of several."""
    return f"{what} {us / 1000:,.3f} ms" if us >= 0 else f"{what} {-us / 1000:,.3f} ms before the window"


def rule_outcomes(ran: Sequence[str], muted: Sequence[MutedRule], failed: Sequence[FailedRule]) -> Rules:
    """Return what became of the rules."""
    return Rules(
        (
            *(RuleOutcome(code, "") for code in ran),
            *(RuleOutcome(rule.code, rule.slug, "muted", rule.reason) for rule in muted),
            *(RuleOutcome(rule.code, rule.slug, "failed", rule.error) for rule in failed),
        )
    )


def nothing_found(kind: VerdictKind, rules: int, *, with_stacks: bool) -> str:
    """Return the sentence for a report without findings: it must not contradict the verdict above it.

    Args:
        kind: of the verdict.
        rules: how many were asked; "" is returned for none.
        with_stacks: whether Python stacks were recorded.
    """
    if not rules:
        return ""
    looked = counted(rules, "rule")
    if kind == VerdictKind.COMPUTE:
        return f"{looked} looked and found nothing to change."
    if kind == VerdictKind.UNKNOWN:
        return f"{looked} looked and found nothing in what was recorded."
    hint = ""
    if kind in (VerdictKind.OVERHEAD, VerdictKind.MIXED) and not with_stacks:
        hint = (
            " Python stacks (torchwhy profile --stacks), or torch.profiler.record_function around parts of the program,"
            " would show which code it is."
        )
    return f"{looked} looked and found no cause of that in this recording.{hint}"
