"""What a program finds around itself, and leaves, is as without the profiler."""

import shutil
import sys

import pytest
import torch

from torchwhy import profile
from torchwhy.counters.program_line import short_path
from torchwhy.wording import shared_path

RECURSION = """
def deep(n):
    global depth
    depth = n
    deep(n + 1)
try:
    deep(0)
except RecursionError as error:
    print(depth, error)
"""


def test_a_program_may_recurse_as_deep_as_alone(profile_program, run_plainly, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RECURSION)
    assert profile_program(program=program, loaded=False).out == run_plainly(program).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no folder in which a process works")
def test_a_recording_is_whole_when_the_working_folder_is_gone(tmp_path, monkeypatch):
    (tmp_path / "program").mkdir()
    monkeypatch.chdir(tmp_path / "program")
    with profile(tmp_path / "run", wait=0, warmup=1, active=1, stacks=False) as p:
        for _ in range(2):
            shutil.rmtree(tmp_path / "program", ignore_errors=True)
            torch.ones(8).cos()
            p.step()
    assert p.result.problems == ()
    assert p.result.folder == tmp_path / "run"
    assert {"trace.json.gz", "run.json", "findings.json"} <= {path.name for path in p.result.folder.iterdir()}
    assert (shared_path("/a/b"), short_path("/a/b")) == ("/a/b", "/a/b")
