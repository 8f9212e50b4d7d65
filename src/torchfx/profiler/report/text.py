"""The report as a screen of text."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.bars import bars
from torchfx.profiler.report.failures import failures
from torchfx.profiler.report.heading import heading, job_heading
from torchfx.profiler.report.rank_tables import job_tables
from torchfx.profiler.report.style import PLAIN, Style
from torchfx.profiler.report.told import SHOWN, told
from torchfx.profiler.report.verdict import KINDS
from torchfx.profiler.wording import counted, enumeration

__all__ = ["text"]

_WIDEST: Final = 110
"""Lines longer than this are hard to read, however wide the terminal."""


def text(report: dict[str, Any], style: Style = PLAIN, *, verbose: bool = False) -> str:
    """Draw a report.

    Args:
        report: what `describe` or `describe_job` returns.
        style: width, colour and characters.
        verbose: everything, informational findings too.
    """
    style = Style(min(style.width, _WIDEST), style.colour, style.unicode)
    if "ranks" in report:
        parts = [job_heading(report, style), _verdict(report, style), *job_tables(report, style, verbose)]
    else:
        parts = [heading(report, style), _verdict(report, style), bars(report, style, verbose)]
    parts += [*told(report, style, verbose), _notes(report, style, verbose)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _verdict(report: dict[str, Any], style: Style) -> list[str]:
    found = report["verdict"]
    kind = KINDS.get(found["kind"], found["kind"]).upper()
    colour = {"compute-bound": "green", "unknown": "yellow"}.get(found["kind"], "red")
    lines = [style.paint(kind, "bold", colour)]
    lines += [style.paint(line, "bold") for line in style.wrap(style.plain(found["sentence"]))]
    for caveat in found["caveats"]:
        lines += style.wrap(style.plain(caveat))
    return lines


def _notes(report: dict[str, Any], style: Style, verbose: bool) -> list[str]:
    lines = []
    hidden = sum(finding["severity"] == "info" for finding in report["findings"])
    told = len(report["findings"]) - hidden
    more = []
    if hidden and not verbose:
        more.append(f"{counted(hidden, 'more thing is', 'more things are')} good to know")
    if told > SHOWN and not verbose:
        more.append(f"{counted(told - SHOWN, 'finding is', 'findings are')} told by the title only")
    if more:
        lines.append(f"{enumeration(more)}: -v shows all.")
    if told > 1:
        lines.append("Findings overlap: what they would save doesn't add up.")
    lines += failures(report)
    reasons: dict[str, list[str]] = {}
    for muted in report["muted"]:
        reasons.setdefault(muted["reason"], []).append(muted["code"])
    for reason, codes in reasons.items():
        which = ", ".join(codes) if verbose or len(codes) <= 6 else counted(len(codes), "rule")
        lines.append(f"Not asked: {which}; {reason}.")
    if report["findings"]:
        lines.append("torchfx rule CODE explains a rule and its thresholds.")
    return [style.paint(line, "dim") for note in lines for line in style.wrap(style.plain(note))]
