"""The report as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from typing import Any, Final

from torchfx.profiler.report.failures import failures
from torchfx.profiler.report.frames import short_name
from torchfx.profiler.report.nothing import nothing_found
from torchfx.profiler.report.rank_tables import job_tables
from torchfx.profiler.report.style import PLAIN
from torchfx.profiler.report.verdict import KINDS
from torchfx.profiler.wording import duration, percent

__all__ = ["escaped", "markdown"]

_LONGEST: Final = 120
"""Characters of an event's name; kernels can have thousands."""

_GROUPS: Final = {"gpu": "GPU", "idle": "GPU idle while the host", "host": "Program"}
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(report: dict[str, Any], *, verbose: bool = False) -> str:
    """Draw a report.

    Args:
        report: what `describe` returns.
        verbose: informational findings too.
    """
    trace, found = report["trace"], report["verdict"]
    lines = [f"### {escaped(trace['name'])}: {KINDS.get(found['kind'], found['kind'])}", ""]
    lines += [f"{escaped(' '.join([found['sentence'], *found['caveats']]))}", ""]
    lines += [f"- repaired: {escaped(repair['sentence'])}" for repair in trace["repairs"]]
    lines += [""] if trace["repairs"] else []
    if "ranks" in report:
        lines += ["```text", *(line for part in job_tables(report, PLAIN, verbose) for line in [*part, ""]), "```", ""]
    else:
        lines += _table(report["breakdown"], report["window"])
    findings = [finding for finding in report["findings"] if verbose or finding["severity"] != "info"]
    for number, finding in enumerate(findings, 1):
        lines += _finding(number, finding)
    lines += [] if findings else [escaped(nothing_found(report))]
    lines += ["", *(f"<sub>{escaped(sentence)}</sub>" for sentence in failures(report))] if report["failed"] else []
    hidden = len(report["findings"]) - len(findings)
    lines += ["", f"<sub>{hidden} informational findings are left out.</sub>"] if hidden else []
    lines += ["", "<sub>Findings overlap: what they would save doesn't add up.</sub>"] if len(findings) > 1 else []
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """Return a text as it is to be read: on one line, with Markdown's own characters escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """Return a text in back-ticks, more of them than it has in a row."""
    text = " ".join(text.split()).replace("|", "\\|") or "(no name)"
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _table(breakdown: dict[str, Any], window: dict[str, Any]) -> list[str]:
    if not breakdown["parts"]:
        return []
    steps = breakdown["step"]
    head = f"{escaped(window['name'])}, {duration(breakdown['window_us'])}"
    lines = [f"| {head} | share | time |" + (" per step (median) |" if steps else "")]
    lines.append("| --- | ---: | ---: |" + (" ---: |" if steps else ""))
    for part in breakdown["parts"]:
        row = f"| {_GROUPS[part['group']]} {part['label']} | {percent(part['share'])} | {duration(part['time_us'])} |"
        lines.append(row + (f" {duration(part['per_step']['median_us'])} |" if part["per_step"] else ""))
    return [*lines, ""]


def _finding(number: int, finding: dict[str, Any]) -> list[str]:
    label = f"{finding['code']} {finding['slug']}"
    stake = (
        f", {duration(finding['time_us'])} of {duration(finding['window']['duration_us'])}"
        if finding["time_us"]
        else ""
    )
    stake += " at stake" if stake and finding["severity"] != "info" else ""
    lines = [f"{number}. **{escaped(finding['title'])}** ({finding['severity']}{stake}; {_code(label)})", ""]
    for item in finding["evidence"][:3]:
        facts = [f"{item['count']:,} times"] if item["count"] > 1 else []
        facts += [duration(item["time_us"])] if item["time_us"] else []
        facts += [escaped(item["note"])] if item["note"] else []
        at = f", at {_code(item['own_code'])}" if item.get("own_code") else ""
        name = _code(PLAIN.shorten(short_name(item["name"]), _LONGEST))
        lines.append(f"   - {name}{': ' if facts else ''}{', '.join(facts)}{at}")
    why = "Why, probably" if finding["cause_is"] == "inferred" else "Why"
    lines += ["", f"   {why}: {escaped(finding['cause'])}"]
    lines += ["", f"   **Fix**: {escaped(finding['fix'])}"] if finding["fix"] else []
    return [*lines, ""]
