"""`torchwhy experiment` as a person runs it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import run_apart, run_here
from torchwhy.cli import experiment as command


def request(**changed):
    usual = command.Request("fp32", "cpu", batch=None, warm=False, compiled=False, mode=None, schedule=(1, 1, 3))
    return replace(usual, **changed)


def test_the_documented_call_writes_the_documented_files(tmp_path):
    ran = run_here("experiment", "matmul-add", "--size=8", "--device=cpu", "--format=json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    assert (data["schema"], data["kind"]) == (1, "experiment")
    trace = tmp_path / data["cases"][0]["trace"]
    assert trace.parent == tmp_path / "traces" / "matmul_add"
    assert trace.name.startswith("8_bf16_cold_eager")
    assert {e["name"] for e in json.loads(trace.read_text())["traceEvents"]} >= {"matmul_add", "ProfilerStep#2"}


def test_pytorchs_profiler_says_nothing_of_its_own(tmp_path):
    ran = run_apart("experiment", "matmul-add", "--size=8", "--device=cpu", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_sweep_draws_and_keeps_numbers_and_picture(tmp_path, capsys):
    target = command.Target(tmp_path, force=False)
    assert command.run("matmul-add", [64], request(), every=False, over="size=1,2", target=target) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("matmul-add fp32, eager, on cpu\n")
    assert "Share of the time that is work" in printed
    files = sorted(path.suffix for path in (tmp_path / "matmul_add").iterdir())
    assert files == [".json", ".png"]
    kept = json.loads(next((tmp_path / "matmul_add").glob("sweep_1-2_*.json")).read_text())
    assert [point["size"] for point in kept["points"]] == [1, 2]


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"mode": "reduce-overhead"}, 2, "mode is for compiled runs: add --compile to --mode reduce-overhead"),
        ({"device": "hpu"}, 2, "device 'hpu' is not here"),
        ({"schedule": (0, 0, 0)}, 2, "active >= 1"),
    ],
)
def test_wrong_use_is_one_line_on_stderr(changed, status, message, capsys):
    target = command.Target(Path("unused"), force=False)
    assert command.run("matmul-add", [64], request(**changed), every=False, over="", target=target) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_status_3(tmp_path, capsys):
    (tmp_path / "traces").touch()
    target = command.Target(tmp_path / "traces", force=False)
    assert command.run("matmul-add", [2], request(), every=False, over="", target=target) == 3
    assert "cannot write" in capsys.readouterr().err
