"""What is written to be shared doesn't tell whose folder it was written in."""

from pathlib import Path

import pytest

from tests.allocator.snapshots import Allocator
from tests.command_line import run_here
from tests.traces import Story
from torchwhy.present.formats import FORMATS
from torchwhy.present.sarif import _uri
from torchwhy.wording import shared_path

OUTSIDE = "sarif"
"""Tools that show findings beside the code need to find the file."""


def calls(folder):
    yield "explain", folder / "a.json"
    yield "diff", folder / "a.json", folder / "b.json"
    yield "memory", folder / "a.pickle"
    yield "memory", folder / "a.pickle", folder / "b.pickle"
    yield "memory", folder / "a.json"


@pytest.fixture
def folder(tmp_path):
    for name in "ab":
        story = Story()
        for i in range(4):
            story.step(i + 1, at=1000 * i, us=900)
            story.op("aten::mm", 1000 * i + 10, 500)
        story.memory(20, 1_000, 1_000)
        story.write(tmp_path / f"{name}.json")
        made = Allocator()
        made.alloc(1_000, (f"{tmp_path}/train.py", 3, "step"))
        made.oom(2_000, 1, (f"{tmp_path}/train.py", 3, "step"))
        made.write(tmp_path / f"{name}.pickle")
    return tmp_path


@pytest.mark.parametrize("form", sorted({*FORMATS} - {OUTSIDE}))
def test_no_format_has_the_folder(folder, form):
    for command, *files in calls(folder):
        ran = run_here(command, *files, "--format", form, "-v", folder=folder)
        assert str(folder) not in ran.stdout, f"{command} --format {form}"


@pytest.mark.parametrize("command", ["report", "memory"])
def test_no_page_has_the_folder(folder, command):
    for files in (["a.json"], ["a.json", "b.json"]):
        ran = run_here(command, *(folder / name for name in files), "-o", "page.html", folder=folder)
        assert ran.returncode == 0, ran.stderr
        assert str(folder) not in (folder / "page.html").read_text()


def test_homes_are_abbreviated_and_sarif_finds_files_again(monkeypatch):
    assert shared_path("/root/a.json") == "~/a.json"
    assert shared_path("/rooted/a.json") == "/rooted/a.json"
    monkeypatch.setenv("HOME", "/home/me")
    assert _uri(shared_path("/home/me/a.json")) == Path("/home/me/a.json").as_uri()
