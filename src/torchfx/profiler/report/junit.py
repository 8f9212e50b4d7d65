"""The report as JUnit XML: a test case per rule that was asked, failed where it found something that matters."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree import ElementTree

from torchfx.profiler.report.failures import failures
from torchfx.profiler.rules.catalogue import find_rule
from torchfx.profiler.rules.finding import SEVERITIES
from torchfx.profiler.wording import duration

__all__ = ["junit"]

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def junit(report: dict[str, Any], fail_on: str = "medium") -> str:
    """Return the XML.

    Args:
        report: what `describe` returns.
        fail_on: the severity from which a finding is a failure.
    """
    serious = SEVERITIES[SEVERITIES.index(fail_on) :]
    by_code: dict[str, list[dict[str, Any]]] = {code: [] for code in report["ran"]}
    for finding in report["findings"]:
        by_code.setdefault(finding["code"], []).append(finding)
    bad = {code: [f for f in found if f["severity"] in serious] for code, found in by_code.items()}
    muted, failed = report["muted"], report["failed"]
    totals = {
        "tests": str(len(by_code) + len(muted) + len(failed)),
        "failures": str(sum(map(bool, bad.values()))),
        "errors": str(len(failed)),
        "skipped": str(len(muted)),
    }
    suites = ElementTree.Element("testsuites", {k: v for k, v in totals.items() if k != "skipped"})
    name = _clean(f"torchfx explain {report['trace']['file']}")
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, **totals})
    for code in by_code:
        case = _case(suite, code, find_rule(code).slug)
        if bad[code]:
            titles = "; ".join(finding["title"] for finding in bad[code])
            failure = ElementTree.SubElement(case, "failure", {"message": _clean(titles), "type": "finding"})
            failure.text = _clean("\n\n".join(map(_told, bad[code])))
    for item, sentence in zip(failed, failures(report), strict=True):
        ElementTree.SubElement(
            _case(suite, item["code"], item["slug"]), "error", {"message": _clean(sentence), "type": "rule"}
        )
    for item in muted:
        ElementTree.SubElement(_case(suite, item["code"], item["slug"]), "skipped", {"message": _clean(item["reason"])})
    ElementTree.SubElement(suite, "system-out").text = _clean(report["verdict"]["sentence"])
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, code: str, slug: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", {"classname": "torchfx.explain", "name": f"{code} {slug}".strip()})


def _told(finding: dict[str, Any]) -> str:
    of = finding["window"]["duration_us"]
    lines = [f"{finding['title']} ({finding['severity']})"]
    lines += [f"At stake: {duration(finding['time_us'])} of {duration(of)}"] if finding["time_us"] else []
    lines += [
        f"- {item['name']}" + (f" at {item['own_code']}" if item["own_code"] else "") for item in finding["evidence"]
    ]
    lines += [f"Why: {finding['cause']}", f"Fix: {finding['fix']}"]
    return "\n".join(lines)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
