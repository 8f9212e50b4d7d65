"""The worked example tells the truth: each fix removes the finding it is for, and the diff sees it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchwhy

PROGRAM = Path(__file__).parents[2] / "examples" / "slow_training" / "train.py"
STORY = {"as it was": (), "data": ("data",), "frames": ("data", "frames"), "double": ("data", "frames", "double")}
STAGES = [*STORY]

pytestmark = pytest.mark.many  # each stage trains for a while


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Record stages of the story as README.md does, but fewer steps, and without Python's stacks."""
    folder = tmp_path_factory.mktemp("story")
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}

    def record(stage):
        profile = [sys.executable, "-m", "torchwhy", "profile", "--active", "6", "--no-stacks", "-o", folder / stage]
        options = [word for fix in STORY[stage] for word in ("--fix", fix)]
        command = [*profile, PROGRAM, "--steps", "12", *options]
        subprocess.run(list(map(str, command)), check=True, capture_output=True, env=one_thread, cwd=folder)

    for stage in STAGES:
        record(stage)
    return {stage: torchwhy.load(folder / stage / "trace.json.gz") for stage in STAGES}


def assert_shorter_and_shorter(traces):
    """By the processor's time, which other tests beside this one change little."""
    spent = [traces[stage].info.top["torchwhy_processor_time"]["cpu_us"] for stage in STAGES]
    assert spent == sorted(spent, reverse=True)


def slugs(trace):
    return {finding.slug for finding in trace.diagnose() if finding.severity != "info"}


def test_the_fixes_remove_what_was_found(traces):
    assert {"dataloader-wait", "tensor-for-loop", "fp64"} <= slugs(traces["as it was"])
    assert not {"dataloader-wait", "tensor-for-loop", "dispatch-flood", "fp64"} & slugs(traces["double"])


def test_each_fix_removes_its_finding(traces):
    assert "dataloader-wait" not in slugs(traces["data"])
    assert {"tensor-for-loop", "fp64"} <= slugs(traces["data"])
    assert not {"dataloader-wait", "tensor-for-loop", "dispatch-flood"} & slugs(traces["frames"])
    assert "fp64" in slugs(traces["frames"])
    assert_shorter_and_shorter(traces)


def test_the_steps_get_shorter(traces):
    assert_shorter_and_shorter(traces)


def test_the_diff_tells_what_was_fixed(traces):
    text = str(torchwhy.diff(traces["as it was"], traces["double"]))
    assert "faster" in text
    for slug in ("tensor-for-loop", "fp64"):
        assert f"{slug}" in text
