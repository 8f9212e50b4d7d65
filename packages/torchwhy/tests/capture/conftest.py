"""Runs the programs beside this folder through the command line, as a user would."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.warm import python

PROGRAMS = Path(__file__).parent / "programs"


@dataclass
class Ran:
    status: int
    out: str
    report: str
    folder: Path

    def json(self, name):
        return json.loads((self.folder / name).read_text())

    def trace(self, name="trace.json.gz"):
        return json.loads(gzip.decompress((self.folder / name).read_bytes()))

    def steps(self, name="trace.json.gz"):
        """Numbers of the recorded steps; what the GPU echoes does not count."""
        events = self.trace(name)["traceEvents"]
        return [
            int(event["name"].partition("#")[2])
            for event in events
            if event["name"].startswith("ProfilerStep#") and event["cat"] == "user_annotation"
        ]


@pytest.fixture
def profile_program(tmp_path):
    def run(*words, program, arguments=(), environment=None, loaded=True):
        """Profile a program, in a process that has PyTorch loaded or in a fresh one."""
        out = tmp_path / "run"
        words = ("-m", "torchwhy", "profile", "--out", out, *words, program, *arguments)
        variables = {**os.environ, "NO_COLOR": "1", **(environment or {})}
        ran = python(*words, folder=PROGRAMS, environment=variables, loaded=loaded)
        return Ran(ran.returncode, ran.stdout, ran.stderr, out)

    return run


@pytest.fixture
def run_plainly():
    def run(program, *arguments):
        command = [sys.executable, program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=PROGRAMS, timeout=120, check=False)

    return run
