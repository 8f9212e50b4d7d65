"""The benchmarks' scripts as a person runs them."""

import json
import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import command, document, suites, throughput
from bench.command import app

BENCHMARK = Path(__file__).parents[2] / "benchmark"


@pytest.fixture
def measure(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; return its exit status and what it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(arguments))
        return ended.value.code, *capsys.readouterr()

    return run


def run_script(name, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(BENCHMARK / name), run_name="__main__")
    return ended.value.code


def test_a_script_prints_json_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_script("bench_threshold_sweep.py", "--samples", "64", "--channels", "1", "-r", "1", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["suite"], answer["rows"][0]["samples"]) == (1, "threshold", 64)
    assert {"processor", "cores", "threads", "instruction_set", "versions"} <= set(answer["hardware"])


def test_each_script_runs_its_suite(monkeypatch):
    asked = []
    monkeypatch.setattr(command, "run", lambda suite, request: asked.append((suite, request.quick)) or 0)
    scripts = ("api_bench", "fir_bench", "iir_bench", "latency_bench", "bench_threshold_sweep", "targets")
    assert [run_script(f"{name}.py", "--quick") for name in scripts] == [0] * len(scripts)
    assert asked == [(name, True) for name in suites.NAMES]


def test_bench_shows_a_table_writes_csv_and_png_and_reports_a_refused_peer_as_status_1(tmp_path, measure, monkeypatch):
    few = replace(throughput.SUITES["iir"], contenders=("torchfx",))
    monkeypatch.setitem(throughput.SUITES, "iir", few)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    size = ("--durations", "0.02", "--channels", "1", "--repetitions", "2")
    status, shown, _ = measure("iir", *size, "--peer", f"broken={python}")
    assert status == 1
    for word in ("ns/sample", "scipy sosfilt", "instruction set", "  #", "not timed: broken"):
        assert word in shown
    assert (tmp_path / "iir_bench.out").read_text().startswith("contender,device,channels,")
    assert (tmp_path / "iir_bench.png").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["sos"], 2, "SUITE must be one of api, fir, iir"),
        (["iir", "--durations", "long"], 2, "--durations must be numbers"),
        (["iir", "--channels", "0"], 2, "must be above 0"),
        (["latency", "--durations", "1"], 2, "--durations means nothing to the suite latency"),
        (["targets", "--peer", "a=b"], 2, "--peer means nothing to the suite targets"),
        (["latency", "--samples", "1000000"], 2, "must lie in [1, 65536]"),
        (["iir", "--peer", "a"], 2, "--peer must be NAME=PYTHON"),
        (["iir", "--peer", "a=/no/python"], 3, "there is no Python at /no/python"),
        (["threshold", "-o", "/dev/null/folder"], 3, "cannot write into /dev/null/folder"),
    ],
)
def test_misuse_and_what_cannot_run(measure, arguments, status, message):
    found, shown, trouble = measure(*arguments)
    assert (found, shown) == (status, "")
    assert message in trouble


def test_the_folder_is_made_before_anything_is_measured(tmp_path, measure, monkeypatch):
    run_suite, there = suites.run, []

    def run(*arguments):
        there.append((tmp_path / "new" / "folder").is_dir())
        return run_suite(*arguments)

    monkeypatch.setattr(suites, "run", run)
    size = ("--samples", "64", "--channels", "1", "-r", "1")
    assert measure("threshold", *size, "-o", "new/folder")[0] == 0
    assert there == [True]
    assert (tmp_path / "new" / "folder" / "threshold_bench.out").exists()


def test_the_documents_are_made_from_the_reports(tmp_path, capsys):
    main = runpy.run_path(str(BENCHMARK / "performance_page.py"))["main"]
    assert main(tmp_path) == 3
    (tmp_path / "README.md").write_text("\n".join(document.SPEEDS))
    assert main(tmp_path) == 3
    assert "No such file" in (said := capsys.readouterr().err)
    assert "the suite targets" in said
    (tmp_path / "docs").mkdir()
    shutil.copytree(BENCHMARK / "results", tmp_path / "benchmark" / "results")
    assert main(tmp_path) == 0
    assert (tmp_path / "docs" / "performance.md").read_text() == (BENCHMARK.parent / "docs/performance.md").read_text()
    assert "| work | against | times faster |" in (tmp_path / "README.md").read_text()
