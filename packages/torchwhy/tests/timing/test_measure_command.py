"""`torchwhy measure` as a person runs it."""

import json

import pytest

from tests.command_line import run_apart, run_here
from torchwhy.cli import measure as command
from torchwhy.present.formats import FORMATS


def test_json_carries_the_schema_and_the_times(tmp_path):
    options = ["--setup", "x = torch.ones(3)", "--max-time", "0.2", "--threads", "1", "--format", "json"]
    ran = run_here("measure", "x + 1", *options, folder=tmp_path)
    assert ran.returncode == 0
    data = json.loads(ran.stdout)
    assert (data["schema"], data["kind"], data["name"], data["threads"]) == (1, "measurement", "x + 1", 1)
    assert data["n"] == len(data["times_s"])


def test_several_statements_are_compared(tmp_path):
    (tmp_path / "mine.py").write_text("import torch\nx = torch.ones(300)\n")
    statement = "[x.sin() for _ in range(20)]"
    options = ["-s", "from mine import x", "--max-time", "0.5"]
    ran = run_apart("measure", "x.sin()", statement, *options, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "x.sin() is faster than every other" in ran.stdout or "no winner: " in ran.stdout
    assert "Times over those of x.sin()" in ran.stdout
    assert statement in ran.stdout


def test_nothing_ran_is_status_1(capsys):
    assert command.run(["x"], "x = torch.ones(3)", threads=None, max_time_s=0.2, form="text") == 1
    assert "nothing-ran: no operator ran" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("statements", "status", "message"),
    [
        (["x +"], 2, "error: the statement is not Python: invalid syntax in 'x +'"),
        (["1", "1"], 2, "error: the statements must differ"),
        (["unknown + 1"], 3, "error: the code raised NameError: name 'unknown' is not defined"),
    ],
)
def test_trouble_is_one_line_on_stderr(statements, status, message, capsys):
    assert command.run(statements, "pass", threads=None, max_time_s=0.2, form="text") == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_answer(form, capsys):
    assert command.run(["x + 1", "x - 1"], "x = torch.ones(3)", threads=None, max_time_s=0.1, form=form) == 0
    assert capsys.readouterr().out


def test_an_unknown_format_is_misuse(capsys):
    assert command.run(["1"], "pass", threads=None, max_time_s=0.1, form="yaml") == 2
    assert "--format must be one of text, json" in capsys.readouterr().err
