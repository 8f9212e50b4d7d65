"""`tools/count_kernel_launches.py`."""

import json
import runpy
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "count_kernel_launches.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the tool in this process; return its exit status, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(TOOL), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(TOOL), run_name="__main__")
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("depths", [["2,5"], ["2", "5"], ["2, 5"]])
def test_counts_by_depth(run, depths):
    status, out, _ = run("--depths", *depths, "--samples", "2000", "--device", "cpu", "--json")
    assert status == 0
    answer = json.loads(out)
    assert (answer["schema"], answer["device"], answer["shape"]) == (1, "cpu", [2, 2000])
    counts = {(row["depth"], row["path"]): (row["native_calls"], row["cuda_launches"]) for row in answer["rows"]}
    assert counts == {(2, "fused"): (1, 0), (2, "unfused"): (2, 0), (5, "fused"): (1, 0), (5, "unfused"): (5, 0)}
    assert all(row["time_us"] > 1 for row in answer["rows"])


def test_prints_a_table(run):
    status, out, _ = run("--depths", "3", "--samples", "2000", "--device", "cpu")
    assert status == 0
    for word in ("native_calls", "cuda_launches", "fused", "unfused"):
        assert word in out


@pytest.mark.parametrize("depths", ["x", "0", ","])
def test_bad_depths_are_misuse(run, depths):
    status, _, err = run("--depths", depths)
    assert status == 2
    assert "--depths must be" in err
