"""Findings as text: symptom, time at stake, evidence, cause, fix."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.frames import short_name
from torchfx.profiler.report.nothing import nothing_found
from torchfx.profiler.report.style import Style
from torchfx.profiler.wording import duration, percent

__all__ = ["SHOWN", "told"]

SHOWN: Final = 5
"""Findings told in full on one screen; of the others only the title."""

_EVIDENCE: Final = 3


def told(report: dict[str, Any], style: Style, verbose: bool) -> list[list[str]]:
    """Return a paragraph of lines for each finding, the first `SHOWN` in full; all of them where `verbose`."""
    wanted = [_from_start(f, report) for f in report["findings"] if verbose or f["severity"] != "info"]
    if not wanted:
        return [style.wrap(nothing_found(report))]
    full = wanted if verbose else wanted[:SHOWN]
    found = [[style.paint("Findings, the most time at stake first", "bold")]]
    found += [_finding(number, finding, style, verbose) for number, finding in enumerate(full, 1)]
    found.append(_titles(len(full) + 1, wanted[len(full) :], style))
    return found


def _from_start(finding: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """With times as viewers of traces show them: from the first event on."""
    zero = report["trace"]["start_us"]
    items = [
        {**item, "start_us": item["start_us"] - zero if item["start_us"] is not None else None}
        for item in finding["evidence"]
    ]
    return {**finding, "evidence": items}


def _titles(first: int, findings: list[dict[str, Any]], style: Style) -> list[str]:
    """One or two lines each."""
    lines = []
    for number, finding in enumerate(findings, first):
        label = f"({finding['code']} {finding['slug']}, {finding['severity']})"
        wrapped = style.wrap(style.plain(f"{finding['title']} {label}"), indent=4)
        lines += [f"{number:>2}  {wrapped[0].strip()}", *wrapped[1:]]
    return lines


def _finding(number: int, finding: dict[str, Any], style: Style, verbose: bool) -> list[str]:
    title = style.wrap(style.plain(finding["title"]), indent=4) or [""]
    title[0] = f"{number:>2}  {title[0].strip()}"
    lines = [style.paint(line, "bold") for line in title]
    lines += _stake(finding, style)
    if verbose or finding["severity"] != "low":  # what matters little is told in short
        lines += _evidences(finding["evidence"], style, verbose)
        inferred = "Probably: " if finding["cause_is"] == "inferred" else ""
        lines += _labelled("Why", inferred + finding["cause"], style)
    lines += _labelled("Fix", finding["fix"], style) if finding["fix"] else []
    return lines


def _stake(finding: dict[str, Any], style: Style) -> list[str]:
    of = finding["window"]["duration_us"]
    words = []
    if finding["time_us"]:
        share = f" ({percent(finding['time_us'] / of)})" if of else ""
        stake = " at stake" if finding["severity"] != "info" else ""  # nothing is to be won by what is only told
        words.append(f"{duration(finding['time_us'])} of {duration(of)}{stake}{share}")
    if finding["confidence"] != "high":
        words.append({"medium": "fairly sure", "low": "not sure"}[finding["confidence"]])
    start, severity = f"{finding['code']} {finding['slug']}, ", finding["severity"]
    lines = style.wrap(start + severity + (f": {', '.join(words)}" if words else ""), indent=4)
    return [lines[0].replace(start + severity, start + style.paint(severity, severity), 1), *lines[1:]]


def _evidences(items: list[dict[str, Any]], style: Style, verbose: bool) -> list[str]:
    shown = items if verbose else items[:_EVIDENCE]
    notes = {item["note"] for item in items}
    lines, at = [], ""
    common = notes.pop() if len(notes) == 1 and len(items) > 1 else ""
    if common:
        lines.append(f"    {style.plain(common)}:")
    for item in shown:
        lines += _evidence(item, style, "" if common else item["note"], verbose)
        if item["own_code"] and item["own_code"] != at:
            lines.append(f"      at {style.shorten_path(style.plain(item['own_code']), style.width - 9)}")
        at = item["own_code"]
    if len(items) > len(shown):
        lines.append(f"    and {len(items) - len(shown)} more")
    return lines


def _evidence(item: dict[str, Any], style: Style, note: str, verbose: bool) -> list[str]:
    facts = [f"{item['count']:,} times"] if item["count"] > 1 else []
    facts += [duration(item["time_us"])] if item["time_us"] else []
    facts += [note] if note else []
    if verbose:
        facts += [item["where"]] if item["where"] else []
        facts += [f"begins at {item['start_us'] / 1000:,.3f} ms"] if item["start_us"] is not None else []
    tail = style.plain(", ".join(facts))
    name = style.plain(short_name(item["name"]) or "(no name)")
    room = style.width - 8 - len(tail)
    if room >= min(len(name), 34):
        return [f"    - {style.shorten(name, room)}  {style.paint(tail, 'dim')}".rstrip()]
    return [
        f"    - {style.shorten(name, style.width - 6)}",
        *(style.paint(line, "dim") for line in style.wrap(tail, indent=6)),
    ]


def _labelled(label: str, content: str, style: Style) -> list[str]:
    lines = style.wrap(style.plain(content), indent=9)
    return [f"    {style.paint(label, 'bold')}  {lines[0].strip()}", *lines[1:]] if lines else []
