"""What must hold within any report on a trace: shares lie within the window, and no two sentences disagree."""

from __future__ import annotations

import re

from torchwhy.analysis.names import HOST_STALLS
from torchwhy.wording import duration, percent

VERDICTS = {
    "overhead-bound": {"overhead-bound", "mixed"},
    "compute-bound": {"compute-bound"},
}
"""Rules that name what limits the program, and the verdicts that agree."""

DENIED = {
    "compute-bound": {"python-bound", "overhead-bound", "dataloader-wait"},
}
"""Verdicts, and findings that deny them where they are of high severity."""

SAID = {
    "exposed-comm": ("communication",),
    "overhead-bound": ("computing", "communication", "copies"),
    "compute-bound": ("computing", "communication", "copies"),
    "cpu-exposed-comm": ("communication",),
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


_VALUE = r"([\d.,]+) (min|[TGMk]?B|[mun]?s)"
_SHARE = r"([<>]?[\d.,]+%)"
SHARE_FIRST = re.compile(rf"{_SHARE}[^%()]* \({_VALUE} of {_VALUE}\)")
SHARE_LAST = re.compile(rf"{_VALUE} of {_VALUE}(?:[^%()]| \([^%()]*\))* \({_SHARE}\)")
UNITS = {"min": 60e6, "s": 1e6, "ms": 1e3, "us": 1, "ns": 1e-3, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1}


def amounts(text):
    """The sentences of the forms "P% (A of B)" and "A of B (P%)": what they say, the share, A and B."""
    for form, places in ((SHARE_FIRST, (1, 2, 3, 4, 5)), (SHARE_LAST, (5, 1, 2, 3, 4))):
        for found in form.finditer(text):
            share, part, unit, whole, of = (found[place] for place in places)
            yield found[0], share, _read(part, unit), _read(whole, of)


def uneven_amounts(text):
    """Return those amounts in a text whose share isn't what the two numbers beside it give."""
    return [
        said
        for said, share, part, whole in amounts(text)
        if share not in {percent(part / whole * near) for near in (1 - 1e-5, 1, 1 + 1e-5)}
    ]


def _read(number, unit):
    return float(number.replace(",", "")) * UNITS[unit]


def _parts(report):
    """The breakdown's parts are disjoint and make up the window."""
    breakdown = report["breakdown"]
    window, parts = breakdown["window_us"], breakdown["parts"]
    if abs(window - report["window"]["duration_us"]) > 0.002 and "first step" not in " ".join(
        report["verdict"]["caveats"]
    ):
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
        yield from _stretches(finding)
    slugs = [finding["slug"] for finding in report["findings"]]
    denied = {one["slug"] for one in (*report["muted"], *report["failed"])} & set(slugs)
    yield from (f"{slug} was not asked, and found something" for slug in sorted(denied))
    yield from (f"{one['code']} failed: {one['error']}" for one in report["failed"])


def _stretches(finding):
    """A finding's stretches are apart, lie in its window, and hold the time at stake; its evidence says how often."""
    window, stretches = finding["window"], finding["stretches"]
    edge, total = window["start_us"], sum(one["duration_us"] for one in stretches)
    for one in stretches:
        if one["start_us"] < edge - 0.002:
            yield f"{finding['code']}: a stretch at {one['start_us']} us begins before {edge} us"
        edge = one["start_us"] + one["duration_us"]
    if stretches and edge > window["start_us"] + window["duration_us"] + 0.002:
        yield f"{finding['code']}: a stretch ends at {edge} us, after the window"
    if finding["stretches_count"] == len(stretches) and finding["time_us"] > total + 0.01:
        yield f"{finding['code']}: {finding['time_us']} us at stake, in stretches of {total} us"
    for item in finding["evidence"]:
        if item["starts_us"] and len(item["starts_us"]) != min(item["count"], 1000):
            yield f"{finding['code']}: {item['count']} times {item['name']}, {len(item['starts_us'])} listed"


def _verdict(report):
    """The verdict agrees with the findings."""
    kind, sentence = report["verdict"]["kind"], report["verdict"]["sentence"]
    yield from (f"verdict: {sentence}" for share in _shares(sentence) if share > 1)
    for finding in _on_the_window(report):
        slug, title = finding["slug"], f"{finding['code']} {finding['slug']}: {finding['title']}"
        more = kind in PARTS and _part(report, PARTS[kind]) >= finding["time_us"]  # another stall is the larger one
        if kind not in VERDICTS.get(slug, {kind}) and not (more and slug == "overhead-bound"):
            yield f"the verdict is {kind}, but {title} | {sentence}"
        if finding["severity"] == "high" and slug in DENIED.get(kind, ()):
            yield f"the verdict is {kind}, but {title} | {sentence}"


def _said(report):
    """Shares said in sentences are those of the breakdown."""
    parts = report["breakdown"]["parts"]
    shares = {part["name"]: part["share"] for part in parts}
    idle = sum(part["share"] for part in parts if part["group"] == "idle")
    kind, sentence = report["verdict"]["kind"], report["verdict"]["sentence"]
    waits = sum(shares.get(name, 0.0) for name in HOST_STALLS)
    own = {
        **{one: shares.get(part, 0.0) for one, part in PARTS.items()},
        **({"overhead-bound": waits} if report["gpu"] else {}),
    }
    if kind in own and PERCENT.search(sentence) and percent(own[kind]) not in sentence:
        yield f"{kind} for {own[kind]:.1%}, but {sentence}"
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
        if finding["slug"] == "dataloader-wait" and not _near(_shares(finding["title"])[0], shares.get("data", 0.0)):
            yield f"data {shares.get('data', 0.0):.1%}, but {title}"


def _counts(report):
    """Steps, launches and kernels are counted once."""
    steps, breakdown, launches = report["window"]["steps"], report["breakdown"], report["launches"]
    if breakdown["step"] and breakdown["step"]["count"] != breakdown["steps"]:
        yield f"{breakdown['step']['count']} steps make up the spread, {breakdown['steps']} the breakdown"
    said = re.search(r"of the (\d+) steps", report["verdict"]["sentence"])
    if said and int(said[1]) != breakdown["steps"]:
        yield f"{said[1]} steps in the verdict, {breakdown['steps']} in the breakdown"
    unmarked = "No steps are marked" in " ".join(report["verdict"]["caveats"])
    if unmarked and steps:
        yield f"{len(steps)} steps, but {report['verdict']['caveats']}"
    bounds = {
        ("no-gpu-activity", r"^([\d,]+) kernel launches"): launches["count"],
        ("dropped-kernels", r"of ([\d,]+) kernel launches"): launches["count"],
        ("dropped-kernels", r"^([\d,]+) of"): launches["without_kernel"],
        ("pre-window-kernels", r"^([\d,]+) kernels? w"): launches["kernels_without_launch"],
        ("window-too-short", r"^Only (\d+) step"): len(steps),
    }
    for finding in report["findings"]:
        title = f"{finding['code']} {finding['slug']}: {finding['title']}"
        for (slug, pattern), most in bounds.items():
            said = re.search(pattern, finding["title"]) if finding["slug"] == slug else None
            if said and int(said[1].replace(",", "")) > most:
                yield f"{most} in the report, but {title}"
        waits = re.match(r"([\d,]+) waits? for the device", finding["title"])
        listed = sum(item["count"] for item in finding["evidence"])
        if waits and int(waits[1].replace(",", "")) < listed:
            yield f"{listed} waits as evidence, but {title}"
        if finding["slug"] == "first-step-cold" and finding["title"].startswith("The first step takes"):
            first = duration(steps[0]["duration_us"])
            if not finding["title"].startswith(f"The first step takes {first},"):
                yield f"the first step takes {first}, but {title}"


def _part(report, name):
    return sum(part["time_us"] for part in report["breakdown"]["parts"] if part["name"] == name)


def _on_the_window(report):
    """Findings that speak of the same stretch of time as the breakdown."""
    return [f for f in report["findings"] if f["window"]["duration_us"] == report["breakdown"]["window_us"]]


def _near(said, share):
    return abs(said - share) <= POINT


def _shares(text):
    return [float(number.replace(",", "")) / 100 for number in PERCENT.findall(text)]
