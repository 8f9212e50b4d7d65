"""`tools/gpu_check.py`, where there is no GPU: it starts and says so."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).parents[2] / "tools" / "gpu_check.py"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: run the tool itself")
def test_it_says_that_there_is_no_device(tmp_path):
    ran = subprocess.run(
        [sys.executable, TOOL, "--output", tmp_path / "gpu.json"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    why = "the driver shows no device" if torch.version.cuda else "this PyTorch is built without CUDA"
    assert f"no CUDA device here ({why}): nothing was checked" in ran.stderr
    assert not (tmp_path / "gpu.json").exists()
