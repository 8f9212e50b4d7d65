"""The worked example learns what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "learn_an_eq" / "learn_an_eq.py"


def learned(*options):
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # two would wait for each other beside other tests
    command = [sys.executable, PROGRAM, *options]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=one_thread)
    last = ran.stdout.splitlines()[-1]
    return last, float(last.partition("(median), ")[2].split()[0])


def test_one_equaliser_undoes_a_room(tmp_path):
    last, worst_db = learned("--steps", "60", "--plot", tmp_path / "eq.png")
    assert last.startswith("1 room of up to 9.2 dB")
    assert worst_db < 0.1
    assert (tmp_path / "eq.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.many
def test_a_batch_learns_one_for_each():
    last, worst_db = learned("--batch", "4")
    assert last.startswith("4 rooms")
    assert worst_db < 0.1
