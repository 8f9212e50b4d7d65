"""`torchfx process` killed at random moments; benchmark/kill_process.py says what must hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmark" / "kill_process.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_no_output_is_half_written_and_no_input_lost():
    ran = subprocess.run([sys.executable, SCRIPT, "--kills", "8"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("8 kills, ")
