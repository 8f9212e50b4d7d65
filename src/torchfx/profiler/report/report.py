"""The report on a trace as plain values: schema 1 of `torchfx explain --format json`, and the source of every view."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.breakdown import breakdown
from torchfx.profiler.report.facts import gpu_of, launches_of, trace_of, window_of
from torchfx.profiler.report.frames import own_frame
from torchfx.profiler.report.verdict import verdict
from torchfx.profiler.rules.catalogue import all_rules
from torchfx.profiler.rules.diagnose import Diagnosis
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["SCHEMA", "describe", "finding_of"]

SCHEMA: Final = 1


def describe(trace: Trace, diagnosis: Diagnosis, ran: tuple[str, ...] = (), name: str = "") -> dict[str, Any]:
    """Return everything there is to say of a trace.

    Args:
        trace: what was read.
        diagnosis: what the rules found in it.
        ran: codes of the rules that were asked.
        name: what to call it; the file's name where empty.
    """
    launches, parts = launches_of(trace), breakdown(trace)
    slugs = frozenset(finding.slug for finding in diagnosis.findings)
    return {
        "schema": SCHEMA,
        "trace": trace_of(trace, name),
        "window": window_of(trace),
        "gpu": gpu_of(trace),
        "launches": launches,
        "breakdown": parts,
        "verdict": verdict(trace, parts, launches, slugs),
        "findings": [finding_of(finding) for finding in diagnosis.findings],
        "muted": [{"code": code, "slug": slug_of(code), "reason": why} for code, why in diagnosis.muted.items()],
        "failed": [{"code": code, "slug": slug_of(code), "error": why} for code, why in diagnosis.failed.items()],
        "ran": [code for code in ran if code not in diagnosis.muted and code not in diagnosis.failed],
    }


def slug_of(code: str) -> str:
    """The name of a rule; "" for what offers rules and could not be loaded."""
    return next((rule.slug for rule in all_rules() if rule.code == code), "")


def finding_of(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values, with the line of the program's own code beside each stack."""
    found = finding.to_dict()
    for item in found["evidence"]:
        item["own_code"] = own_frame(item["stack"])
    return found
