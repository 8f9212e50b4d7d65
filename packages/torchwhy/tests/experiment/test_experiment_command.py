"""`torchwhy experiment` as a person runs it."""

import json

import pytest

from tests.command_line import run_apart, run_here


def test_the_documented_call_writes_the_documented_files(tmp_path):
    ran = run_here(
        "experiment", "matmul-add", "--size=8", "--dtype=bf16", "--device=cpu", "--format=json", folder=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    assert (data["schema"], data["kind"]) == (1, "experiment")
    trace = tmp_path / data["cases"][0]["trace"]
    assert trace.parent == tmp_path / "traces" / "matmul_add"
    assert trace.name.startswith("8_bf16_cold_eager")
    assert {e["name"] for e in json.loads(trace.read_text())["traceEvents"]} >= {"matmul_add", "ProfilerStep#2"}


@pytest.mark.many
def test_pytorchs_profiler_says_nothing_of_its_own(tmp_path):
    ran = run_apart("experiment", "matmul-add", "--size=8", "--device=cpu", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("matmul-add 8 x 8 fp32, cold, eager, on cpu\n")


def test_a_sweep_draws_a_bar_for_each_size(tmp_path):
    ran = run_here("experiment", "matmul-add", "--device=cpu", "--sweep=size=1,2", folder=tmp_path)
    assert ran.stdout.startswith("matmul-add fp32, eager, on cpu\n")
    assert "Share of the time that is not overhead" in ran.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mode=reduce-overhead"], "mode is for compiled runs: add --compile to --mode reduce-overhead"),
        (["--device=hpu"], "device 'hpu' is not here"),
        (["--active=0"], "active >= 1"),
    ],
)
def test_wrong_use_is_one_line_on_stderr(options, message, tmp_path):
    ran = run_here("experiment", "matmul-add", *options, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_status_3(tmp_path):
    (tmp_path / "traces").touch()
    ran = run_here("experiment", "matmul-add", "--size=2", "--device=cpu", folder=tmp_path)
    assert ran.returncode == 3
    assert "cannot write" in ran.stderr
