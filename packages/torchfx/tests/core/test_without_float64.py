"""Devices that PyTorch knows and this library cannot compute on."""

import subprocess
import sys
from pathlib import Path


def test_signals_on_a_device_without_float64_are_processed_on_the_cpu():
    tests = Path(__file__).with_name("device_without_float64.py")
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", tests], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
