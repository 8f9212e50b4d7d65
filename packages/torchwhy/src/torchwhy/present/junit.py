"""A document as JUnit XML: a test case for each rule and limit, or a single one where the document has neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from torchwhy.finding import SEVERITIES
from torchwhy.present.document import Check, Checks, Document, FindingItem, Findings, Rules, VerdictBlock
from torchwhy.present.options import Options
from torchwhy.present.phrases import failed_rules, finding_lines, place
from torchwhy.rules.catalogue import all_rules
from torchwhy.wording import safe, shared_path

__all__ = ["render"]

_TOTALS: Final = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the XML: a suite for each document. A finding from `options.fail_on` on is a failure of its rule."""
    serious = SEVERITIES[SEVERITIES.index(options.fail_on) :]
    suites = ElementTree.Element("testsuites")
    for document in documents:
        suite = ElementTree.SubElement(suites, "testsuite", {"name": _suite_name(document)})
        _fill(suite, document, serious)
        totals = _totals(suite)
        suite.attrib.update(totals)
    for name in ("tests", "failures", "errors"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _suite_name(document: Document) -> str:
    return safe(" ".join(filter(None, ("torchwhy", document.command, shared_path(document.file) or document.title))))


def _fill(suite: ElementTree.Element, document: Document, serious: Sequence[str]) -> None:
    findings = [item for block in document.blocks if isinstance(block, Findings) for item in block.items]
    for block in document.blocks:
        if isinstance(block, Checks):
            for check in block.items:
                _check(suite, document, check)
        elif isinstance(block, Rules):
            _rules(suite, document, block, findings, serious)
    if not len(suite):
        _case(suite, document, document.command or document.title)
    verdict = next((block.sentence for block in document.blocks if isinstance(block, VerdictBlock)), "")
    if verdict:
        ElementTree.SubElement(suite, "system-out").text = safe(verdict)


def _totals(suite: ElementTree.Element) -> dict[str, str]:
    found = Counter(child.tag for case in suite.iter("testcase") for child in case)
    return {"tests": str(len(suite.findall("testcase"))), **{_TOTALS[tag]: str(found[tag]) for tag in _TOTALS}}


def _rules(
    suite: ElementTree.Element,
    document: Document,
    block: Rules,
    findings: Sequence[FindingItem],
    serious: Sequence[str],
) -> None:
    slugs = {rule.code: rule.slug for rule in all_rules()}
    asked = {rule.code: rule.slug for rule in block.outcomes if rule.outcome == "asked"}
    asked |= {item.code: item.slug for item in findings}
    for code, slug in asked.items():
        case = _case(suite, document, f"{code} {slugs.get(code, slug)}".strip())
        bad = [item for item in findings if item.code == code and item.severity in serious]
        if bad:
            titles = safe("; ".join(item.title for item in bad))
            failure = ElementTree.SubElement(case, "failure", {"message": titles, "type": "finding"})
            failure.text = "\n\n".join("\n".join(map(safe, finding_lines(item))) for item in bad)
    failed = [rule for rule in block.outcomes if rule.outcome == "failed"]
    for rule, sentence in zip(failed, failed_rules(block), strict=True):
        case = _case(suite, document, f"{rule.code} {rule.slug}".strip())
        ElementTree.SubElement(case, "error", {"message": safe(sentence), "type": "rule"})
    for rule in block.outcomes:
        if rule.outcome == "muted":
            case = _case(suite, document, f"{rule.code} {rule.slug}".strip())
            ElementTree.SubElement(case, "skipped", {"message": safe(rule.reason)})


def _check(suite: ElementTree.Element, document: Document, check: Check) -> None:
    case = _case(suite, document, check.name)
    if check.outcome == "skipped":
        ElementTree.SubElement(case, "skipped", {"message": safe(check.text)})
    elif check.outcome != "passed":
        tag, kind = ("failure", "budget") if check.outcome == "failed" else ("error", "check")
        found = ElementTree.SubElement(case, tag, {"message": safe(check.text), "type": kind})
        at = [f"at {place(check)}"] if place(check) else []
        found.text = "\n".join(map(safe, (*check.evidence, *at)))


def _case(suite: ElementTree.Element, document: Document, name: str) -> ElementTree.Element:
    classname = ".".join(filter(None, ("torchwhy", document.command)))
    return ElementTree.SubElement(suite, "testcase", {"classname": classname, "name": safe(name)})
