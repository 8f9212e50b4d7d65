"""A report as text for people, JSON for programs, JUnit XML for CI systems, and annotations for GitHub."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import msgspec

from torchfx.profiler.gate.report import Report

__all__ = ["FORMATS", "render"]


def render(report: Report, form: str) -> str:
    """Return the report in one of `FORMATS`."""
    return FORMATS[form](report)


def _text(report: Report) -> str:
    shown = [check for check in report.checks if not (check.passed and check.baseline)]
    lines = [f"{'ok  ' if check.passed else 'FAIL'}  {check}" for check in shown]
    kept = [check.baseline for check in report.checks if check.passed and check.baseline]
    lines += [f"ok    {len(kept)} numbers are no larger than in {kept[0]}"] if kept else []
    lines += [f"WARN  {warning}" for warning in report.warnings]
    lines += [f"note  {remark}" for remark in report.remarks]
    count = len(report.checks)
    end = f"all {count} limits kept" if report.passed else f"{len(report.failed)} of {count} limits not kept"
    return "\n".join([*lines, f"{report.run}: {end}"])


def _json(report: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(report.to_dict())).decode()


def _junit(report: Report) -> str:
    totals = {"tests": str(len(report.checks)), "failures": str(len(report.failed))}
    suites = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"torchfx gate {report.run}", "errors": "0", **totals})
    for check in report.checks:
        name = f"{check.metric} {check.rule}"
        case = ElementTree.SubElement(suite, "testcase", {"classname": "torchfx.gate", "name": name})
        if not check.passed:
            headline, _, rest = str(check).partition("\n")
            failure = ElementTree.SubElement(case, "failure", {"message": headline, "type": "budget"})
            failure.text = rest
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode")


def _github(report: Report) -> str:
    """Workflow commands; in their text %, carriage returns and newlines are escaped, in properties : and , too."""
    lines = []
    for check in report.failed:
        title = f"{report.run} {check.metric}"
        lines.append(f"::error title={_escaped(title, ':,')}::{_escaped(str(check))}")
    lines += [f"::warning::{_escaped(warning)}" for warning in report.warnings]
    lines += [f"::notice::{_escaped(remark)}" for remark in report.remarks]
    return "\n".join([*lines, _text(report).rpartition("\n")[2]])


def _escaped(text: str, more: str = "") -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for character in more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


FORMATS: dict[str, Callable[[Report], str]] = {"text": _text, "json": _json, "junit": _junit, "github": _github}
