"""The worked example tells the truth: each fix removes the finding it is for, and the diff sees it."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from torchfx import profiler

PROGRAM = Path(__file__).parents[2] / "examples" / "slow_training" / "train.py"
STORY = {"as it was": (), "data": ("data",), "frames": ("data", "frames"), "double": ("data", "frames", "double")}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Record each stage of the story as README.md does."""
    folder = tmp_path_factory.mktemp("story")
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}

    def record(stage):
        options = [word for fix in STORY[stage] for word in ("--fix", fix)]
        command = [sys.executable, "-m", "torchfx", "profile", "--active", "4", "-o", str(folder / stage), str(PROGRAM)]
        subprocess.run([*command, *options], check=True, capture_output=True, env=one_thread, cwd=folder)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(record, STORY))
    return {stage: profiler.load(folder / stage / "trace.json.gz") for stage in STORY}


def slugs(trace):
    return {finding.slug for finding in trace.diagnose() if finding.severity != "info"}


def test_each_fix_removes_its_finding(traces):
    assert {"dataloader-wait", "tensor-for-loop", "fp64"} <= slugs(traces["as it was"])
    assert "dataloader-wait" not in slugs(traces["data"])
    assert {"tensor-for-loop", "fp64"} <= slugs(traces["data"])
    assert not {"dataloader-wait", "tensor-for-loop", "dispatch-flood"} & slugs(traces["frames"])
    assert "fp64" in slugs(traces["frames"])
    assert "fp64" not in slugs(traces["double"])


def test_the_steps_get_shorter(traces):
    shortest = {stage: min(step.duration for step in trace.steps_found) for stage, trace in traces.items()}
    assert shortest["double"] < shortest["frames"] < shortest["data"] < shortest["as it was"]


def test_the_diff_tells_what_was_fixed(traces):
    text = str(profiler.diff(traces["as it was"], traces["double"]))
    assert "faster" in text
    for slug in ("tensor-for-loop", "fp64"):
        assert f"{slug}" in text
