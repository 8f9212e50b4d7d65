"""What must hold within any report on a trace: shares lie within the window, and no two sentences disagree."""

from __future__ import annotations

import re

LIMITS = {
    "overhead-bound": {"overhead-bound"},
    "compute-bound": {"compute-bound"},
}
"""Rules that name what limits the program, and the verdicts that agree. A verdict may always be unable to tell."""

NOT_WITH = {
    "compute-bound": {"python-bound", "overhead-bound", "dataloader-wait"},
    "overhead-bound": {"compute-bound"},
    "input-bound": {"compute-bound", "overhead-bound"},
    "communication-bound": {"compute-bound", "overhead-bound"},
    "copy-bound": {"compute-bound", "overhead-bound"},
    "compile-bound": {"compute-bound", "overhead-bound"},
}
"""Findings of high severity that deny a verdict."""

PERCENT = re.compile(r"([\d.,]+)\s?%")


def contradictions(report):
    """Return a sentence for each contradiction within a report (`--format json`) on one trace."""
    return [*_parts(report), *_findings(report), *_verdict(report), *_counts(report)]


def _parts(report):
    """The breakdown's parts are disjoint and make up the window."""
    breakdown = report["breakdown"]
    window, parts = breakdown["window_us"], breakdown["parts"]
    if abs(window - report["window"]["duration_us"]) > 0.002:
        yield f"breakdown of {window} us, window of {report['window']['duration_us']} us"
    total = sum(part["time_us"] for part in parts)
    if window and parts and abs(total - window) > 0.01:
        yield f"parts of {total} us in a window of {window} us"
    for part in parts:
        if not -1e-9 <= part["share"] <= 1 + 1e-9:
            yield f"{part['name']} takes {part['share']:.1%}"
        longest = part["per_step"]["high_us"] if part["per_step"] else 0.0
        if longest and longest > breakdown["step"]["high_us"] + 0.002:
            yield f"{part['name']} takes {longest} us of a step of {breakdown['step']['high_us']} us"


def _findings(report):
    """No finding has more time at stake than its window, or names a share above 100%."""
    for finding in report["findings"]:
        window = finding["window"]["duration_us"]
        if not 0 <= finding["time_us"] <= window + 0.01:
            yield f"{finding['code']}: {finding['time_us']} us at stake in a window of {window} us"
        for text in (finding["title"], finding["cause"], *(item["note"] for item in finding["evidence"])):
            yield from (f"{finding['code']}: {text}" for share in _shares(text) if share > 100)
    slugs = [finding["slug"] for finding in report["findings"]]
    denied = {one["slug"] for one in (*report["muted"], *report["failed"])} & set(slugs)
    yield from (f"{slug} was not asked, and found something" for slug in sorted(denied))


def _verdict(report):
    """The verdict agrees with the breakdown and with the findings."""
    verdict, breakdown = report["verdict"], report["breakdown"]
    yield from (f"verdict: {verdict['sentence']}" for share in _shares(verdict["sentence"]) if share > 100)
    for finding in report["findings"]:
        slug, kind = finding["slug"], verdict["kind"]
        if finding["window"]["duration_us"] != breakdown["window_us"]:
            continue
        if (
            kind not in LIMITS.get(slug, {kind})
            and kind != "unknown"
            and not (kind == "mixed" and slug != "compute-bound")
        ):
            yield f"{finding['code']} {slug}, but the verdict is {kind}: {finding['title']} | {verdict['sentence']}"
        if finding["severity"] == "high" and slug in NOT_WITH.get(kind, ()):
            yield f"the verdict is {kind}, but {finding['code']} {slug}: {finding['title']} | {verdict['sentence']}"


def _counts(report):
    """Steps and launches are counted once."""
    steps = len(report["window"]["steps"])
    step = report["breakdown"]["step"]
    if step and step["count"] != steps:
        yield f"{step['count']} steps in the breakdown, {steps} in the window"
    said = re.search(r"of the (\d+) steps", report["verdict"]["sentence"])
    if said and int(said[1]) != steps:
        yield f"{said[1]} steps in the verdict, {steps} in the window"


def _shares(text):
    return [float(number.replace(",", "")) for number in PERCENT.findall(text)]
