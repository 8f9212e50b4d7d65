"""Traces, jobs and recordings show themselves in notebooks."""

import html
import re

import pytest
import torch

import torchwhy
from tests.ranks.jobs import write_job
from tests.traces import Story


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


def test_a_trace_says_what_explain_says():
    told = Story()
    told.step(1, 0, 1000)
    told.op("<script>alert(1)</script>", 10, 900)
    text = shown(told.trace())
    assert "Where the time goes" in text
    assert "torchwhy rule CODE explains a rule and its thresholds." in text
    assert "<script" not in text


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
    frame = re.fullmatch(
        r'<iframe title="Report" sandbox="allow-scripts" style="[^"]*" srcdoc="([^"]*)"></iframe>', text
    )
    assert html.unescape(frame[1]) == (recorded.result.folder / "report.html").read_text()


def test_of_a_large_page_it_says_where_it_is(recorded, monkeypatch):
    monkeypatch.setattr("torchwhy.profiling.LARGEST_FRAME", 10)
    text = shown(recorded)
    assert text.startswith("<pre>program")
    assert f"{recorded.result.folder / 'report.html'} is the report page." in text


def test_before_it_ended_there_is_nothing_to_show(tmp_path):
    assert shown(torchwhy.profile(tmp_path / "run")) is None
