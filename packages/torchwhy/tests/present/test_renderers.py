"""Every renderer draws any document; foreign text can neither steer what shows it nor break the format."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from tests.present.documents import every_block
from torchwhy.errors import ArgumentError
from torchwhy.present.document import Column, Document, Name, Row, Table, Text
from torchwhy.present.formats import FORMATS, render
from torchwhy.present.options import Options
from torchwhy.present.style import Style

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = (
    "evil\x1b[2J\x07\x00\x9b31m name",
    "\u202egnp.exe\u2066\u200b",
    "two\nlines\r\nthree\u2028four",
    '<script>alert(1)</script> & "quotes" \'',
    "| a | `b` **c** [d](javascript:e) <!-- f --> \\",
    "::error::x%0A",
    "]]> ?> \ud800",
)
WIDE = Options(Style(100, unicode=True), verbose=True)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verbose", [False, True])
def test_every_block_is_drawn(form, verbose):
    drawn = render(every_block("something"), form, Options(verbose=verbose))
    assert drawn.endswith("\n")
    assert "something" in drawn


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "json"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_steers_what_shows_it(form, name):
    for options in (Options(), WIDE, Options(Style(80, colour=True, unicode=True))):
        drawn = render(every_block(name), form, options)
        drawn = re.sub(r"\x1b\[[\d;]*m", "", drawn) if options.style.colour and form == "text" else drawn
        assert not STEERING.search(drawn)


@pytest.mark.parametrize("name", HOSTILE[:-1])
def test_json_is_exact_and_still_steers_nothing(name):
    drawn = render(every_block(name), "json")
    assert json.loads(drawn) == {"schema": 1, "name": name}
    assert not STEERING.search(drawn)


@pytest.mark.parametrize("name", HOSTILE)
def test_formats_stay_whole(name):
    ElementTree.fromstring(render(every_block(name), "junit"))
    json.loads(render(every_block(name), "sarif"))
    tags = Tags()
    tags.feed(render(every_block(name), "html", WIDE))
    assert "script" not in tags.seen


def test_a_name_cannot_add_lines():
    one, other = (render(every_block(name), "text", WIDE).count("\n") for name in ("two lines", "two\nlines"))
    assert one == other


def test_markdown_escapes_its_own_characters():
    drawn = render(Document("", (Text("a *b* <c> | [d](e)"),), None), "markdown")
    assert drawn == "a \\*b\\* \\<c\\> \\| \\[d\\](e)\n"


def test_several_documents_are_one_answer():
    two = [every_block("first"), every_block("second")]
    assert [item["name"] for item in json.loads(render(two, "json"))["reports"]] == ["first", "second"]
    assert len(json.loads(render(two, "sarif"))["runs"]) == 2
    assert len(ElementTree.fromstring(render(two, "junit"))) == 2
    assert render(two).index("first") < render(two).index("second")


def test_junit_counts_what_it_lists():
    suites = ElementTree.fromstring(render(every_block(), "junit"))
    assert suites.attrib == {"tests": "6", "failures": "2", "errors": "1"}
    assert suites[0].get("skipped") == "2"
    mild = ElementTree.fromstring(render(every_block(severity="low"), "junit"))
    assert mild.get("failures") == "1"
    strict = ElementTree.fromstring(render(every_block(severity="low"), "junit", Options(fail_on="low")))
    assert strict.get("failures") == "2"


def test_a_document_without_checks_is_one_passed_test():
    suites = ElementTree.fromstring(render(Document("m", (Text("done"),), None, command="measure"), "junit"))
    assert suites.attrib == {"tests": "1", "failures": "0", "errors": "0"}


def test_annotations_name_file_and_line():
    drawn = render(every_block("run"), "github")
    assert "::error title=run run,file=a.py,line=3::run%0Arun\n" in drawn


def test_rows_of_the_full_view_are_counted():
    rows = (Row(("a", "1")), Row(("b", "2"), "full"), Row(("c", "3"), "full"))
    table = Table((Column("name"), Column("n", number=True)), rows, noun=("rank", "ranks"))
    assert render(Document("", (table,), None)) == "name  n\na     1\n2 more ranks with -v.\n"
    assert render(Document("", (table,), None), options=Options(verbose=True)) == "name  n\na     1\nb     2\nc     3\n"
    assert "2 more ranks" in render(Document("", (table,), None), "markdown")


def test_long_names_are_cut_where_they_are_alike():
    a, b = (f"gemm_with_a_rather_long_name_for_a_kernel_{size}_and_so_on_for_a_while" for size in ("128x64", "64x64"))
    table = Table((Column("A"), Column("B")), (Row((Name(a), Name(b))),), pair=True)
    drawn = render(Document("", (table,), None), options=Options(Style(60)))
    assert "128x64" in drawn
    assert "_64x64" in drawn


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(ArgumentError, match="--format must be one of text, json, markdown, html, sarif, junit"):
        render(every_block(), "yaml")
