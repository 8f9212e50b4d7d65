"""`torchwhy export` as a person runs it."""

import json

import pytest
from typer.testing import CliRunner

from tests.difference.pairs import loop
from torchwhy.cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop([1000] * 3, first=0).write(tmp_path / "a.pt.trace.json")
    return lambda *arguments: CliRunner().invoke(app, ["export", *arguments])


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--to", "speedscope"], "a.speedscope.json"),
        (["--to", "perfetto"], "a.perfetto.json.gz"),
        (["--to", "csv"], "a.events.csv"),
        (["--to", "csv", "--table", "ops", "-o", "ops.csv.gz"], "ops.csv.gz"),
    ],
)
def test_a_file_for_each_program(run, tmp_path, arguments, name):
    ran = run("a.pt.trace.json", *arguments)
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith(name)
    assert {path.name for path in tmp_path.iterdir()} == {"a.pt.trace.json", name}


def test_the_answer_as_data(run, tmp_path):
    told = json.loads(run("a.pt.trace.json", "--to", "speedscope", "-o", "out.json", "--format", "json").stdout)
    assert (told["schema"], told["to"], told["clipped"]) == (1, "speedscope", 0)
    assert told["bytes"] == (tmp_path / "out.json").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ["a.pt.trace.json", "--to", "chrome"],
            2,
            "--to must be one of speedscope, perfetto, csv, parquet, got 'chrome'",
        ),
        (["a.pt.trace.json", "--to", "csv", "--table", "none"], 2, "--table must be one of events, ops,"),
        (["a.pt.trace.json", "--to", "perfetto", "--table", "ops"], 2, "--table is about csv and parquet"),
        (["a.pt.trace.json", "--to", "perfetto", "-o", "a.pt.trace.json"], 2, "differ from the trace's file"),
        (["missing.json", "--to", "csv"], 3, "missing.json does not exist"),
        (["a.pt.trace.json", "--to", "csv", "-o", "no/such/a.csv"], 3, "cannot write"),
    ],
)
def test_misuse_and_missing_files(run, arguments, status, said):
    ran = run(*arguments)
    assert ran.exit_code == status
    assert said in ran.stderr
