"""`torchwhy cut` as a person runs it."""

import json

import pytest
from typer.testing import CliRunner

from tests.difference.pairs import loop
from torchwhy.cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop([1000] * 5, first=0).write(tmp_path / "trace.json")
    return lambda *arguments: CliRunner().invoke(app, ["cut", *arguments])


def test_steps(run, tmp_path):
    ran = run("trace.json", "--steps", "1-2", "-o", "small.json.gz")
    assert ran.exit_code == 0
    assert "small.json.gz" in ran.stdout
    told = json.loads(run("trace.json", "--steps", "1-2", "-o", "small.json.gz", "--format", "json").stdout)
    assert told["schema"] == 1
    assert 0 < told["events"] < told["of_events"]
    assert told["bytes"] == (tmp_path / "small.json.gz").stat().st_size


def test_misuse_and_missing_files(run, tmp_path):
    assert run("trace.json", "--steps", "1", "-o", "trace.json").exit_code == 2
    assert run("trace.json", "-o", "a.json").exit_code == 2
    assert run("trace.json", "--window", "5", "-o", "a.json").exit_code == 2
    assert run("missing.json", "--steps", "1", "-o", "a.json").exit_code == 3
    assert run("trace.json", "--steps", "1", "-o", "no/such/a.json").exit_code == 3
    assert run("trace.json", "--window", "0-900.5", "--categories", "cpu_op,kernel", "-o", "a.json").exit_code == 0
    assert not (tmp_path / "no").exists()
