"""The page's static part says what `explain` says, holds nothing that runs, and names what its buttons show."""

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from tests.ranks.jobs import write_job
from tests.traces import Story
from torchwhy.cli.report import Request, run
from torchwhy.diffing import diff
from torchwhy.loading.job import load_job
from torchwhy.loading.trace import load
from torchwhy.page.report_page import difference_page, job_page, trace_page
from torchwhy.page.timeline import timeline_of
from torchwhy.ranks.timeline import merge_ranks
from torchwhy.report.job_report import describe_job
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose

HOSTILE = [
    "</script><script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">',
    "\u202egnirts\u202c",
    "--><!--",
    "A" * 5000,
]


def training(steps=5, wait=400):
    """Steps that wait for a batch, then compute; names are hostile."""
    story = Story()
    for i in range(steps):
        start = 2000 * i
        story.step(i, start, 2000)
        story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 10, wait)
        for k, name in enumerate(HOSTILE):
            begin = start + wait + 20 + 100 * k
            story.op(name, begin, 90)
            story.kernel(f"{name} kernel", begin + 40, 60, launch_at=begin + 10)
    return story


def page_of(story, folder, name="trace.json"):
    trace = load(story.write(folder / name))
    diagnosis = diagnose(trace)
    report = describe(trace, diagnosis, thorough=True)
    return trace_page(trace, diagnosis, report), report, diagnosis, trace


class Elements(HTMLParser):
    """Tags in order, attributes of each, and text without scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.inside = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.inside += [tag] if tag in ("script", "style") else []

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        self.text += [] if self.inside else [data]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return page_of(training(), tmp_path_factory.mktemp("page"))


def test_texts_are_those_of_the_report(made):
    page, report, _, _ = made
    said = " ".join("".join(Elements(page).text).split())
    assert " ".join(report.verdict.sentence.split()) in said
    assert report.findings
    for finding in report.findings:
        assert " ".join(finding.title.split()) in said
        assert " ".join(finding.fix.split()) in said


def test_nothing_in_it_runs_and_nothing_is_fetched(made):
    page = made[0]
    tags = Elements(page).found
    scripts = [attributes for tag, attributes in tags if tag == "script"]
    assert [one.get("type") for one in scripts] == ["text/plain", "module"]
    assert not {tag for tag, _ in tags} & {"img", "iframe", "link", "object", "embed", "base"}
    for _, attributes in tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")]
        assert (attributes.get("href") or "#").startswith("#")
    assert "\u202e" not in page


def test_buttons_name_what_is_there(made):
    page, report, diagnosis, trace = made
    targets = [attributes["data-show"] for _, attributes in Elements(page).found if "data-show" in attributes]
    findings = {target for target in targets if target.startswith("finding:")}
    assert findings == {f"finding:{i}" for i in range(len(report.findings))}
    for target in targets:
        kind, _, which = target.partition(":")
        if kind == "evidence":
            finding, item = map(int, which.split(":"))
            assert len(diagnosis.findings[finding].evidence[item].rows)
        if kind == "step":
            assert int(which) < len(trace.steps_found)
        if kind == "part":
            assert which in {part.name for part in report.breakdown.parts}
    assert {"finding", "evidence", "step", "part", "name"} <= {target.partition(":")[0] for target in targets}


def test_the_bars_of_a_step_add_up_to_it(made):
    page, report, _, _ = made
    steps = re.findall(r'<g class="step".*?</g>', page, re.DOTALL)
    assert len(steps) == len(report.window.steps)
    for drawn, step in zip(steps, report.window.steps, strict=True):
        total = sum(float(us) for us in re.findall(r'data-us="([\d.]+)"', drawn))
        assert total == pytest.approx(step.duration_us, rel=1e-3)


def test_sections_stand_in_their_order_and_are_linked(made):
    page = made[0]
    sections = [attributes["id"] for tag, attributes in Elements(page).found if tag == "section"]
    assert sections == ["verdict", "steps", "findings", "timeline", "tables", "memory"]
    links = [attributes["href"] for tag, attributes in Elements(page).found if tag == "a"]
    assert links == ["#timeline", *(f"#{section}" for section in sections)]  # the first skips to the timeline


def test_the_same_trace_gives_the_same_bytes(tmp_path, made):
    assert page_of(training(), tmp_path)[0] == made[0]


def test_two_traces_stand_one_above_the_other(tmp_path):
    a, b = (load(training(wait=wait).write(tmp_path / f"{wait}.json")) for wait in (400, 40))
    found = Elements(difference_page(a, b, diff(a, b)))
    assert [attributes["id"] for tag, attributes in found.found if tag == "section"] == ["diff", "timeline"]
    ids = {attributes.get("id") for _, attributes in found.found}
    assert {"stage-0", "stage-1", "timeline-0", "timeline-1"} <= ids
    assert "enumerate(DataLoader)" in unescape("".join(found.text))


def test_a_trace_against_itself_has_no_differences(tmp_path):
    trace = load(training().write(tmp_path / "a.json"))
    text = unescape("".join(Elements(difference_page(trace, trace, diff(trace, trace))).text))
    assert "A and B are identical: the two files hold the same events." in text
    assert "faster" not in text
    assert "slower" not in text


def test_the_ranks_of_a_job_share_a_timeline_that_names_them(tmp_path):
    write_job(tmp_path, 2)
    job = load_job(tmp_path)
    page = job_page(job, describe_job(job, job.diagnose()))
    assert [attributes["id"] for tag, attributes in Elements(page).found if tag == "section"] == ["ranks", "timeline"]
    merged = tmp_path / "merged.json"
    merge_ranks(job, merged)
    labels = {band.label for band in timeline_of(load(merged)).bands}
    assert {label.split(",")[0] for label in labels} == {"rank 0", "rank 1"}


def test_the_page_of_a_job_leads_to_those_of_its_ranks_and_back(tmp_path, capsys):
    write_job(tmp_path / "traces", 2)
    job = tmp_path / "pages" / "the job.html"
    job.parent.mkdir()
    assert run([str(tmp_path / "traces")], Request(job, ranks=True)) == 0
    pages = {path.name: path.read_text(encoding="utf-8") for path in job.parent.iterdir()}
    assert sorted(pages) == ["the job-rank0.html", "the job-rank1.html", "the job.html"]

    def links(page):
        found = Elements(page).found
        return [unquote(each["href"]) for tag, each in found if tag == "a" and not each["href"].startswith("#")]

    assert links(pages["the job.html"]) == ["the job-rank0.html", "the job-rank1.html"]
    for rank in (0, 1):
        assert links(pages[f"the job-rank{rank}.html"]) == ["the job.html"]
        assert f"<title>rank {rank}</title>" in pages[f"the job-rank{rank}.html"]


def test_the_pages_of_ranks_need_a_folder_of_ranks(tmp_path, capsys):
    trace = training().write(tmp_path / "a.json")
    assert run([str(trace)], Request(tmp_path / "x.html", ranks=True)) == 2
    assert "--ranks writes the pages of several ranks" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()
