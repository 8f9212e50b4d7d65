"""A gate's report as a document."""

from __future__ import annotations

import re

from torchwhy.gate.budget import Check
from torchwhy.gate.report import GateReport
from torchwhy.present import document as present
from torchwhy.wording import counted

__all__ = ["gate_document"]

_LINE = re.compile(r"(?P<file>\S+\.py)(:(?P<number>\d+) in |\((?P<traced>\d+)\): )")


def gate_document(report: GateReport) -> present.Document:
    """Return what a gate answers: each limit, then what casts doubt on those that were kept."""
    limits = counted(len(report.checks), "limit")
    kept = f"{limits} kept" if report.passed else f"{len(report.failed)} of {limits} not kept"
    blocks: list[present.Block] = [
        present.VerdictBlock("passed" if report.passed else "failed", kept, look="good" if report.passed else "bad"),
        present.Checks(tuple(map(_check, report.checks))),
    ]
    no_larger = [check for check in report.checks if check.passed and check.baseline]
    if no_larger:
        numbers = counted(len(no_larger), "number is", "numbers are")
        blocks.append(present.Text(f"{numbers} no larger than in {no_larger[0].baseline}.", when="short"))
    blocks += [present.Caveat("warning", text) for text in report.warnings]
    blocks += [present.Caveat("note", text) for text in report.remarks]
    return present.Document(report.run, tuple(blocks), report.to_dict(), command="gate", file=report.run)


def _check(check: Check) -> present.Check:
    """Return a limit with the line that broke it; those of a baseline that were kept belong to the full view."""
    found = next(filter(None, map(_LINE.search, check.evidence)), None)
    file, line = (found["file"], int(found["number"] or found["traced"])) if found else ("", 0)
    return present.Check(
        f"{check.metric} {check.rule}",
        "passed" if check.passed else "failed",
        check.headline,
        check.evidence,
        file,
        line,
        "full" if check.passed and check.baseline else "always",
    )
