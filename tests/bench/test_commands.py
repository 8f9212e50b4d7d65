"""`torchfx bench` and the scripts as a person runs them."""

import json
import os
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchfx.bench import throughput
from torchfx.cli.app import app

BENCHMARK = Path(__file__).parents[2] / "benchmark"


@pytest.fixture
def torchfx(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; return its exit status and what it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(arguments))
        return ended.value.code, *capsys.readouterr()

    return run


def test_a_script_prints_json_alone(tmp_path):
    ran = subprocess.run(
        [sys.executable, BENCHMARK / "bench_threshold_sweep.py", "--samples", "64", "-r", "1", "--json"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert (answer["schema"], answer["suite"], answer["rows"][0]["samples"]) == (1, "threshold", 64)
    assert {"processor", "cores", "threads", "instruction_set", "versions"} <= set(answer["hardware"])


def test_bench_shows_a_table_writes_csv_and_png_and_reports_a_refused_peer_as_status_1(tmp_path, torchfx, monkeypatch):
    few = replace(throughput.SUITES["iir"], contenders=("copy", "scipy lfilter", "scipy sosfilt"))
    monkeypatch.setitem(throughput.SUITES, "iir", few)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    size = ("--durations", "0.02", "--channels", "1", "--repetitions", "2")
    status, shown, _ = torchfx("bench", "iir", *size, "--peer", f"broken={python}")
    assert status == 1
    for word in ("ns/sample", "scipy sosfilt", "instruction set", "###", "not timed: broken"):
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
        (["threshold", "--samples", "64", "--channels", "1", "-r", "1", "-o", "missing"], 3, "cannot write"),
    ],
)
def test_misuse_and_what_cannot_run(torchfx, arguments, status, message):
    found, shown, trouble = torchfx("bench", *arguments)
    assert (found, shown) == (status, "")
    assert message in trouble


def test_the_page_is_made_from_reports(tmp_path, torchfx, capsys):
    status, report, _ = torchfx("bench", "threshold", "--samples", "64", "-r", "1", "--json")
    assert status == 0
    (tmp_path / "threshold.json").write_text(report)
    main = runpy.run_path(str(BENCHMARK / "performance_page.py"))["main"]
    assert main(["threshold.json"]) == 0
    assert "## threshold" in capsys.readouterr().out
    assert main([]) == 2
    assert main(["missing.json"]) == 3
