"""Traces, jobs and recordings show themselves in notebooks."""

import html
import random
import re

import pytest
import torch

import torchwhy
from tests.ranks.jobs import write_job
from tests.traces import Story
from torchwhy.notebook import LARGEST_FRAME
from torchwhy.page.report_page import page_of


def shown(item):
    """What a notebook shows: by IPython's formatter where it is installed."""
    try:
        from IPython.core.formatters import HTMLFormatter
    except ImportError:
        return item._repr_html_()
    return HTMLFormatter()(item)


def test_in_a_terminal_a_trace_says_in_a_line_what_it_is(tmp_path):
    story = Story()
    for at in range(1200):
        story.op("aten::mm", 10 * at, 9)
    path = story.write(tmp_path / "a.json")
    assert repr(torchwhy.load(path)) == f"<LoadedTrace {path}: 1,200 events; .ops(), .diagnose(), .sql()>"


FRAME = r'<iframe title="Report" sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>'


def told():
    story = Story()
    story.step(1, 0, 1000)
    story.op("<script>alert(1)</script>", 10, 900)
    return story.trace()


def test_a_trace_shows_its_page_in_a_frame_and_says_what_explain_says():
    text = shown(told())
    page, rest = re.fullmatch(rf"{FRAME}\n(.*)", text, re.S).groups()
    assert html.unescape(page) == page_of(told(), max_size=LARGEST_FRAME)
    assert "timeline-0" in page
    assert "&lt;h2&gt;Tables&lt;/h2&gt;" in page
    assert "Where the time goes" in rest
    assert "torchwhy rule CODE explains a rule and its thresholds." in rest
    assert "<script" not in text


def test_the_frame_of_a_large_trace_is_no_larger_than_a_notebook_bears(monkeypatch):
    story = Story()
    rng = random.Random(0)
    for i in range(20_000):
        story.op(f"aten::op{rng.randrange(5000)}", 100 * i, rng.randrange(1, 99))
    trace = story.trace()
    monkeypatch.setattr("torchwhy.notebook.LARGEST_FRAME", 400_000)
    page = html.unescape(re.match(FRAME, shown(trace))[1])
    assert len(page.encode()) <= 400_000
    monkeypatch.setattr("torchwhy.notebook.LARGEST_FRAME", 1_000)  # less than any page has
    assert "<iframe" not in shown(trace)
    assert "Where the time goes" in shown(trace)
    monkeypatch.undo()
    monkeypatch.setattr("torchwhy.notebook.MOST_EVENTS", 1_000)
    assert "<iframe" not in shown(trace)


def test_a_job_shows_its_ranks(tmp_path):
    write_job(tmp_path / "job", 2)
    text = shown(torchwhy.load_job(tmp_path / "job"))
    assert "rank" in text
    assert "<table>" in text


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    with torchwhy.profile(folder / "run", wait=0, warmup=0, active=2, stacks=False) as p:
        for _ in range(3):
            torch.ones(8).cos()
            p.step()
    return p


def test_a_recording_shows_its_page_in_a_frame(recorded):
    text = shown(recorded)
    frame = re.fullmatch(FRAME, text)
    assert html.unescape(frame[1]) == (recorded.result.folder / "report.html").read_text()


def test_of_a_large_page_it_says_where_it_is(recorded, monkeypatch):
    monkeypatch.setattr("torchwhy.profiling.LARGEST_FRAME", 10)
    text = shown(recorded)
    assert text.startswith("<pre>program")
    assert f"{recorded.result.folder / 'report.html'} is the report page." in text


def test_before_it_ended_there_is_nothing_to_show(tmp_path):
    assert shown(torchwhy.profile(tmp_path / "run")) is None
