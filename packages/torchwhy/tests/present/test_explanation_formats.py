"""Views for other programs: complete, escaped, valid."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from tests.analysis.programs import PROGRAMS, hint, report_on, training, waiting
from tests.present.documents import shown
from torchwhy.finding import Evidence
from torchwhy.present.formats import FORMATS
from torchwhy.report.trace_report import FailedRule

EVIL = "a | `b` <script>alert(1)</script> ]]> & \x00\ud83d *c* [d](e)"


def evil(trace):
    return waiting(trace, title=EVIL, cause=EVIL, fix=EVIL, evidence=(Evidence(EVIL, note=EVIL, where=EVIL),))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_view_of_every_program(name, form):
    drawn = shown(report_on(PROGRAMS[name](), waiting, hint), form)
    assert drawn.endswith("\n")
    assert "waiting for the next batch" in drawn


def test_markdown_escapes():
    drawn = shown(report_on(training(), evil), "markdown")
    assert "<script>" not in re.sub(r"`+ .*? `+", "", drawn)
    assert r"a \| \`b\` \<script\>" in drawn
    for block in drawn.split("\n\n"):
        table = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) <= 1


def test_markdown_leaves_information_out():
    report = report_on(training(), waiting, hint)
    assert "The DataLoader has no workers" not in shown(report, "markdown")
    assert "1 informational finding is left out" in shown(report, "markdown")
    assert "The DataLoader has no workers" in shown(report, "markdown", verbose=True)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", PROGRAMS)
def test_html_is_closed_and_harmless(name):
    tags = Tags()
    tags.feed(shown(report_on(PROGRAMS[name](), evil, hint), "html", verbose=True))
    assert tags.open == []
    assert "script" not in tags.seen
    assert tags.seen <= {"html", "head", "meta", "title", "style", "body", "section", "h1", "h2", "p", "strong"} | {
        "h3", "table", "thead", "caption", "tr", "th", "td", "svg", "rect", "ol", "li", "ul", "code", "br", "span",
    }  # fmt: skip


def test_sarif_has_what_the_standard_asks_for():
    report = report_on(
        training(), waiting, hint, muted={"B10": "no GPU"}, ran=("B9", "B10"), name="/data/my run/trace.json.gz"
    )
    log = json.loads(shown(report, "sarif"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["B9", "B10"]
    assert rules[0]["shortDescription"]["text"] == "The program waits for its next batch."
    assert "num_workers" in rules[0]["help"]["text"]
    for result in run["results"]:
        assert result["level"] in {"none", "note", "warning", "error"}
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"] == {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 34}}
        (trace,) = result["relatedLocations"]
        assert trace["physicalLocation"]["artifactLocation"]["uri"] == "file:///data/my%20run/trace.json.gz"
        names = [logical["fullyQualifiedName"] for logical in place["logicalLocations"]]
        assert names == ["train.py(34): main"]
    assert [result["level"] for result in run["results"]] == ["error", "note"]
    (call,) = run["invocations"]
    assert call["executionSuccessful"] is True
    assert "B10 dataloader-single-process was not asked: no GPU" in json.dumps(call)


def test_sarif_names_a_place_once():
    twice = (Evidence("aten::mm"), Evidence("aten::mm"), Evidence(""))
    report = report_on(training(), lambda trace: waiting(trace, evidence=twice))
    (result,) = json.loads(shown(report, "sarif"))["runs"][0]["results"]
    assert [one["fullyQualifiedName"] for one in result["locations"][0]["logicalLocations"]] == ["aten::mm"]


def junit(report, **options):
    return ElementTree.fromstring(shown(report, "junit", **options).encode())


def test_sarif_knows_a_finding_again_by_its_id():
    def known(trace):
        return waiting(trace, id="B9-3f1c")

    results = json.loads(shown(report_on(training(), known, hint), "sarif"))["runs"][0]["results"]
    assert [one.get("partialFingerprints") for one in results] == [{"torchwhyFinding/v1": "B9-3f1c"}, None]


def test_junit_has_a_case_per_rule():
    suites = junit(report_on(training(), waiting, muted={"B10": "no GPU"}, ran=("B9", "B10")))
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == {"B9 dataloader-wait", "B10 dataloader-single-process"}
    assert "num_workers=4" in cases["B9 dataloader-wait"].find("failure").text
    assert cases["B10 dataloader-single-process"].find("skipped").get("message") == "no GPU"


@pytest.mark.parametrize(("fail_on", "failures"), [("info", "2"), ("medium", "1"), ("high", "1")])
def test_junit_fails_from_a_severity(fail_on, failures):
    assert junit(report_on(training(), waiting, hint), fail_on=fail_on).get("failures") == failures


BROKEN = {"B9": "KeyError: 'Input Dims' | <b>", "house": "ImportError: no house"}


@pytest.mark.parametrize("form", FORMATS)
def test_every_view_tells_of_rules_that_failed(form):
    drawn = shown(report_on(training(), hint, failed=BROKEN), form)
    assert "<b>" not in drawn or form in ("text", "json", "sarif", "github", "agent")
    drawn = drawn.replace("\\", "")
    assert "KeyError" in drawn
    assert "ImportError" in drawn
    if form != "json":
        assert "Rule B9 dataloader-wait could not look:" in drawn
        assert "The rules of house could not be loaded:" in drawn


def test_a_rule_that_failed_is_not_among_those_that_looked():
    report = report_on(training(), failed=BROKEN, ran=("B9", "B10"))
    assert report.ran == ("B10",)
    assert report.failed == (
        FailedRule("B9", "dataloader-wait", BROKEN["B9"]),
        FailedRule("house", "", BROKEN["house"]),
    )
    suites = junit(report)
    assert (suites.get("tests"), suites.get("errors"), suites.get("failures")) == ("3", "2", "0")


def test_junit_survives_any_text():
    assert junit(report_on(training(), evil)).get("failures") == "1"
