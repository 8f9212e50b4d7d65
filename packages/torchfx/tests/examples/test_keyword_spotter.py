"""The keyword spotter learns, with either kind of voice, and hears a stream as it hears the whole."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "examples" / "keyword_spotter" / "keyword_spotter.py"


@pytest.mark.parametrize("path", [pytest.param(None, marks=pytest.mark.many), ""], ids=["installed", "synthesised"])
def test_words_are_spotted_in_voices_never_heard(path):
    # With an empty PATH no espeak-ng is found. The program itself asserts that blocks give what the whole gives.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({} if path is None else {"PATH": path})}
    command = [sys.executable, PROGRAM, "--voices", "6", "--steps", "60"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = re.search(r"s: ([\d.]+) % of the words right", ran.stdout.splitlines()[-1])
    assert found is not None
    assert float(found[1]) > 60  # a seventh by chance
