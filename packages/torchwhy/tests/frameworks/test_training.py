"""What the adapters of training frameworks share: a recording opened and closed by calls."""

import subprocess
import sys
import warnings

import pytest
import torch

from torchwhy import profile
from torchwhy.errors import ArgumentError
from torchwhy.training import TrainingRecording


def test_a_recording_by_calls(tmp_path):
    recording = TrainingRecording(tmp_path / "run", {"wait": 1, "warmup": 0, "active": 2, "stacks": False})
    for _ in range(4):
        recording.begin()
        torch.ones(8).cos()
        recording.step()
    recording.end()
    assert recording.session.result.steps_recorded == 2
    assert {"trace.json.gz", "findings.json", "report.html"} <= {path.name for path in (tmp_path / "run").iterdir()}
    before = sorted(path.name for path in tmp_path.iterdir())
    recording.end()
    recording.begin()
    recording.step()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_options_are_those_of_profile(tmp_path):
    with pytest.raises(ArgumentError, match="active must be a whole number of steps >= 1, got 0"):
        TrainingRecording(tmp_path, {"active": 0})


def test_without_a_step_nothing_is_written(tmp_path):
    recording = TrainingRecording(tmp_path / "run", {})
    recording.end()
    assert not list(tmp_path.iterdir())


@pytest.mark.many
def test_training_that_raises_leaves_the_folder(tmp_path):
    """Frameworks don't tell it: the end of the process does."""
    code = """
import sys, torch
from torchwhy.training import TrainingRecording
recording = TrainingRecording(sys.argv[1], {"wait": 0, "warmup": 1, "active": 2, "stacks": False})
for i in range(9):
    recording.begin()
    torch.ones(8).cos()
    if i == 5:
        raise ValueError("training")
    recording.step()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert "ValueError: training" in ran.stderr
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize("call", ["_begin", "step", "_finish", "__enter__", "__exit__"])
def test_errors_do_not_end_the_training(tmp_path, monkeypatch, capsys, call):
    """Even where the program has made an error of each warning, as this test does."""

    def fail(*_):
        raise KeyError("injected")

    recording = TrainingRecording(tmp_path / "run", {"wait": 0, "warmup": 0, "active": 1, "stacks": False})
    monkeypatch.setattr(profile, call, fail)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            recording.begin()
            torch.ones(8).cos()
            recording.step()
        recording.end()
    assert "torchwhy: the profiler stopped: KeyError: 'injected'" in capsys.readouterr().err
    monkeypatch.setattr("torchwhy.capture.result.Capture.__str__", fail)
    assert isinstance(recording.report(), str)


@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_a_missing_framework_is_named(framework, monkeypatch):
    for name in (framework, f"{framework}.pytorch.profilers"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "pytorch_lightning", raising=False)
    monkeypatch.delitem(sys.modules, f"torchwhy.{framework}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install '?{framework}"):
        __import__(f"torchwhy.{framework}")
