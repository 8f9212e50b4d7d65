"""`tools/torchaudio_suite.py`, on a checkout with a test of each outcome."""

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "torchaudio_suite.py"
TESTS = """
import unittest
import torch
import torchaudio.functional as F
from torchaudio import transforms as T
from torchaudio.functional.functional import _private

SPAN = F.TokenSpan(1, 0, 1, 1.0)

class Tests(unittest.TestCase):
    def test_a_pass(self):
        assert T.Resample(8000, 16000)(torch.ones(1, 100)).shape == (1, 200)

    def test_a_failure(self):
        assert F.gain(torch.ones(1, 9)).sum() == 123

    def test_a_script(self):
        torch.jit.script(F.gain)

    def test_a_decoder(self):
        F.rnnt_loss(torch.ones(1))

    def test_a_private_function(self):
        _private()

    def test_a_lost_file(self):
        open("/nowhere/at/all")

    def test_words(self):
        with self.assertRaisesRegex(ValueError, "Only other words"):
            F.mask_along_axis(torch.ones(1, 2, 3), 1, 0.0, 0)

    @unittest.expectedFailure
    def test_what_torchaudio_fails(self):
        pass
"""


def test_each_outcome_is_counted(tmp_path):
    folders = [tmp_path / "test" / "torchaudio_unittest" / name for name in ("functional", "transforms", "compliance")]
    for folder in folders:
        folder.mkdir(parents=True)
    (folders[0] / "all_cpu_test.py").write_text(TESTS)
    (folders[1] / "all_cuda_test.py").write_text("raise RuntimeError('needs CUDA')")
    outside = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, TOOL, tmp_path]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=outside, timeout=300)
    assert found.returncode == 1, found.stderr
    assert "functional/all_cpu_test.py::Tests::test_a_failure\n\n2 of 3 passed (66.7 %)\n" in found.stdout
    counted = found.stdout.rpartition("passed (66.7 %)\n")[2].splitlines()
    assert sorted(counted) == [
        "1 left out: expects the error raised in other words",
        "1 left out: needs TorchScript",
        "1 left out: needs a file that the checkout lacks",
        "1 left out: needs rnnt_loss, no signal processing",
        "1 left out: needs torchaudio's private _private",
    ]


def test_another_folder_is_refused(tmp_path):
    found = subprocess.run([sys.executable, TOOL, tmp_path], capture_output=True, text=True, check=False, timeout=300)
    assert found.returncode == 2
    assert f"checkout must hold test/torchaudio_unittest, got {tmp_path}" in found.stderr
