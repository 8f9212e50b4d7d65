"""Runs of `torchwhy try` that are forked from a Python with PyTorch loaded, which saves seconds of each."""

import os
from pathlib import Path

from tests import warm
from torchwhy.tuning.runs import Runs

CHILD = Path(__file__).with_name("child.py")


def start(command, environment, folder, limit_s, grace_s):
    """As `run_command`; environment variables that PyTorch reads when it is loaded come too late."""
    words = command[1:] if command[1] == "-m" else [CHILD, command[-1]]
    ran = warm.python(*words, folder=Path.cwd(), environment=dict(os.environ) | dict(environment))
    (folder / "stdout").write_text(ran.stdout)
    return (ran.stderr.strip().rpartition("\n")[2] or f"status {ran.returncode}") if ran.returncode else ""


def warm_runs(program, folder):
    return Runs(program, folder, start)
