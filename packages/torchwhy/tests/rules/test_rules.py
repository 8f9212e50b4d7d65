"""Every rule fires where it should, is silent where it should, and documents itself."""

import re
from functools import cache

import pytest

from tests.rules.cases import FIRES, SILENT
from torchwhy.finding import CONFIDENCES, SEVERITIES
from torchwhy.rules.catalogue import all_rules, find_rule
from torchwhy.rules.diagnose import diagnose

RULES = [rule for rule in all_rules() if rule.function.__module__.startswith("torchwhy.")]  # others bring their tests


@cache
def findings(story):
    """What all rules find in a story, which often is a case of several."""
    diagnosis = diagnose(story().trace())
    assert not diagnosis.failed
    return diagnosis.findings


def ids(cases):
    return [f"{slug}-{function.__name__}" for slug, function in cases]


@pytest.mark.parametrize(("slug", "story"), FIRES, ids=ids(FIRES))
def test_fires(slug, story):
    found = [finding for finding in findings(story) if finding.slug == slug]
    assert found, f"{slug} is silent"
    for finding in found:
        assert finding.severity in SEVERITIES
        assert finding.confidence in CONFIDENCES
        assert finding.title
        assert finding.cause
        assert finding.fix or finding.severity == "info"
        assert 0 <= finding.time_us <= finding.window.us * 1.000001, "more time at stake than the window has"
        assert finding.evidence or finding.severity == "info", "a finding rests on rows"
        assert len(finding.title) <= 120


@pytest.mark.parametrize(("slug", "story"), SILENT, ids=ids(SILENT))
def test_stays_silent(slug, story):
    find_rule(slug)  # a misspelt name is silent everywhere
    assert slug not in {finding.slug for finding in findings(story)}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.on == "trace"], ids=lambda rule: rule.slug)
def test_has_both_kinds_of_case(rule):
    assert rule.slug in {slug for slug, _ in FIRES}, "no case where it fires"
    assert rule.slug in {slug for slug, _ in SILENT}, "no case where it is silent"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_documents_itself(rule):
    text = rule.documentation
    assert re.fullmatch(r"[A-Z]\d+", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.slug)
    assert rule.title.endswith(".")
    assert len(rule.title) <= 100
    assert rule.source
    for heading in ("Sees:", "Costs:", "Fix:", "Known problems:"):
        assert f"\n\n{heading} " in text, f"no paragraph {heading}"
