"""What must hold within any report on a trace: shares lie within the window, and no two sentences disagree."""

from __future__ import annotations

import re

VERDICTS = {
    "overhead-bound": {"overhead-bound", "mixed"},
    "compute-bound": {"compute-bound"},
}
"""Rules that name what limits the program, and the verdicts that agree. A verdict may always be unable to tell."""

DENIED = {
    "compute-bound": {"python-bound", "overhead-bound", "dataloader-wait"},
}
"""Verdicts, and findings that deny them where they are of high severity."""

SAID = {
    "exposed-comm": ("communication",),
    "overhead-bound": ("computing", "communication", "copies"),
    "compute-bound": ("computing", "communication", "copies"),
    "processor-comm": ("communication",),
}
"""Findings whose title begins with the share of these parts of the breakdown together."""

IDLE = {
    "overhead-bound",
    "explicit-sync",
    "dataloader-wait",
    "stalled-queue",
    "one-giant-gap",
    "between-steps-gap",
    "python-bound",
    "launch-outliers",
    "step-tail",
}
"""Findings whose time at stake lies in the device's idle time, where there is a device."""

PARTS = {
    "communication-bound": "communication",
    "copy-bound": "copies",
    "input-bound": "data",
    "compile-bound": "compiling",
}
"""Verdicts whose sentence begins with the share of a part."""

PERCENT = re.compile(r"([\d.,]+)\s?%")
POINT = 0.011
"""Shares are said in whole percents above 10%."""


def contradictions(report):
    """Return a sentence for each contradiction within a report (`--format json`) on one trace."""
    return [*_parts(report), *_findings(report), *_verdict(report), *_said(report), *_counts(report)]


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
            yield from (f"{finding['code']}: {text}" for share in _shares(text) if share > 1)
    slugs = [finding["slug"] for finding in report["findings"]]
    denied = {one["slug"] for one in (*report["muted"], *report["failed"])} & set(slugs)
    yield from (f"{slug} was not asked, and found something" for slug in sorted(denied))
    yield from (f"{one['code']} failed: {one['error']}" for one in report["failed"])


def _verdict(report):
    """The verdict agrees with the findings."""
    kind, sentence = report["verdict"]["kind"], report["verdict"]["sentence"]
    yield from (f"verdict: {sentence}" for share in _shares(sentence) if share > 1)
    for finding in _on_the_window(report):
        slug, title = finding["slug"], f"{finding['code']} {finding['slug']}: {finding['title']}"
        if kind not in VERDICTS.get(slug, {kind}) and kind != "unknown":
            yield f"the verdict is {kind}, but {title} | {sentence}"
        if finding["severity"] == "high" and slug in DENIED.get(kind, ()):
            yield f"the verdict is {kind}, but {title} | {sentence}"


def _said(report):
    """Shares said in sentences are those of the breakdown."""
    parts = report["breakdown"]["parts"]
    shares = {part["name"]: part["share"] for part in parts}
    idle = sum(part["share"] for part in parts if part["group"] == "idle")
    kind, sentence = report["verdict"]["kind"], report["verdict"]["sentence"]
    if kind in PARTS and not _near(_shares(sentence)[0], shares.get(PARTS[kind], 0.0)):
        yield f"{PARTS[kind]} {shares.get(PARTS[kind], 0.0):.1%}, but {sentence}"
    computes = re.search(r"it computes for ([\d.,]+ ?%)", sentence)
    if computes and not _near(_shares(computes[1])[0], shares.get("computing", 0.0)):
        yield f"computing {shares.get('computing', 0.0):.1%}, but {sentence}"
    for finding in _on_the_window(report):
        title = f"{finding['code']} {finding['slug']}: {finding['title']}"
        if finding["slug"] in SAID:
            share = sum(shares.get(name, 0.0) for name in SAID[finding["slug"]])
            if not _near(_shares(finding["title"])[0], share):
                yield f"{' + '.join(SAID[finding['slug']])} {share:.1%}, but {title}"
        if report["gpu"] and finding["slug"] in IDLE:
            least = idle * report["breakdown"]["window_us"]
            if finding["time_us"] > least + 0.01:
                yield f"{finding['time_us']} us at stake of {least:.3f} us idle: {title}"
        if finding["slug"] == "idle-definition" and not _near(_shares(finding["title"])[0], idle):
            yield f"idle {idle:.1%}, but {title}"
        if finding["slug"] == "dataloader-wait" and not _near(_shares(finding["title"])[0], shares.get("data", 0.0)):
            yield f"data {shares.get('data', 0.0):.1%}, but {title}"


def _counts(report):
    """Steps, launches and kernels are counted once."""
    steps, breakdown, launches = report["window"]["steps"], report["breakdown"], report["launches"]
    if breakdown["step"] and breakdown["step"]["count"] != len(steps):
        yield f"{breakdown['step']['count']} steps in the breakdown, {len(steps)} in the window"
    said = re.search(r"of the (\d+) steps", report["verdict"]["sentence"])
    if said and int(said[1]) != len(steps):
        yield f"{said[1]} steps in the verdict, {len(steps)} in the window"
    kernels = sum(device["kernels"] for device in report["gpu"])
    for finding in report["findings"]:
        title = f"{finding['code']} {finding['slug']}: {finding['title']}"
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?![\d.]*%)", finding["title"])]
        if finding["slug"] == "no-gpu-activity" and numbers[0] != launches["count"]:
            yield f"{launches['count']} launches, but {title}"
        if finding["slug"] == "short-kernels" and numbers[1] > kernels:
            yield f"{kernels} kernels, but {title}"


def _on_the_window(report):
    """Findings that speak of the report's window."""
    return [f for f in report["findings"] if f["window"]["duration_us"] == report["window"]["duration_us"]]


def _near(said, share):
    return abs(said - share) <= POINT


def _shares(text):
    return [float(number.replace(",", "")) / 100 for number in PERCENT.findall(text)]
