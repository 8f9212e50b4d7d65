"""`tools/count_kernel_launches.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "count_kernel_launches.py"


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("depths", [["2,5"], ["2", "5"], ["2, 5"]])
def test_counts_by_depth(depths):
    ran = run("--depths", *depths, "--samples", "2000", "--device", "cpu", "--json")
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert (answer["schema"], answer["device"], answer["shape"]) == (1, "cpu", [2, 2000])
    counts = {(row["depth"], row["path"]): (row["native_calls"], row["cuda_launches"]) for row in answer["rows"]}
    assert counts == {(2, "fused"): (1, 0), (2, "unfused"): (2, 0), (5, "fused"): (1, 0), (5, "unfused"): (5, 0)}
    assert all(row["time_us"] > 1 for row in answer["rows"])


def test_prints_a_table():
    ran = run("--depths", "3", "--samples", "2000", "--device", "cpu")
    assert ran.returncode == 0, ran.stderr
    for word in ("native_calls", "cuda_launches", "fused", "unfused"):
        assert word in ran.stdout


@pytest.mark.parametrize("depths", ["x", "0", ","])
def test_bad_depths_are_misuse(depths):
    ran = run("--depths", depths)
    assert ran.returncode == 2
    assert "--depths must be" in ran.stderr
