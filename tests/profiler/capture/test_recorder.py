"""One recording after the other."""

import subprocess
import sys

LABELS = """
import sys
from pathlib import Path
import torch
from torch.profiler import record_function
from torchfx.profiler.capture.options import Options
from torchfx.profiler.capture.recorder import Recorder

for _ in range(5):
    first = Recorder(Options().light(), False, None, Path(sys.argv[1]))
    first.start()
    torch.ones(2) + 1
    labels = [record_function(str(number)) for number in range(200)]
    for label in labels:
        label.__enter__()
    first.stop(keep=False)
    others = [b"x" * 64 for _ in range(20_000)]  # takes the memory that the first recording has freed
    second = Recorder(Options().light(), False, None, Path(sys.argv[1]))
    second.start()
    for label in labels:
        label.__exit__(None, None, None)
    second.stop(keep=False)
print("ended well")
"""


def test_labels_may_be_open_while_one_recording_ends_and_the_next_begins(tmp_path):
    command = [sys.executable, "-c", LABELS, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "ended well\n"), ran.stderr
