"""`torchwhy report` writes one page, or says in a line why it can't."""

import pytest
from typer.testing import CliRunner

from tests.traces import Story
from torchwhy.cli.app import app
from torchwhy.cli.report import bytes_from
from torchwhy.errors import ArgumentError


def report(*words):
    return CliRunner().invoke(app, ["report", *map(str, words)])


@pytest.fixture
def trace(tmp_path):
    story = Story()
    for at in story.steps(3, 1000):
        story.kernel("gemm", at + 300, 500, launch_at=at + 100)
    return story.write(tmp_path / "trace.json")


def test_one_trace(trace, tmp_path):
    ran = report(trace, "-o", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "gemm" in page
    assert "wrote" in ran.stderr


def test_two_traces_are_compared(trace, tmp_path):
    ran = report(trace, trace, "-o", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.output
    assert 'id="stage-1"' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["nowhere.json"], 3, "nowhere.json"),
        (["T", "--max-size", "large"], 2, "--max-size must be a size such as 8MB or 500kB, got 'large'"),
        (["T", "--max-size", "1kB"], 2, "max_size must be at least"),
        (["T", "T", "T"], 2, "one trace or folder, or two to compare, got 3"),
        (["T", "T", "--steps", "1"], 2, "--steps chooses steps of one trace"),
        (["T", "-o", "nowhere/page.html"], 3, "cannot write nowhere/page.html"),
    ],
)
def test_trouble_is_said(trace, tmp_path, monkeypatch, words, status, message):
    monkeypatch.chdir(tmp_path)
    ran = report(*(trace if word == "T" else word for word in words))
    assert (ran.exit_code, message in ran.stderr) == (status, True), ran.stderr
    assert not list(tmp_path.glob("*.html"))


def test_sizes():
    assert [bytes_from(text) for text in ("8MB", "500 kB", "1.5gb", "12")] == [8_000_000, 500_000, 1_500_000_000, 12]
    with pytest.raises(ArgumentError, match="--max-size"):
        bytes_from("1e")
