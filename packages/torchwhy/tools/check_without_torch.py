#!/usr/bin/env python3
"""Run what reads, in an environment without PyTorch, and what records, which must say what to install.

python tools/check_without_torch.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
RECORDED = PACKAGE / "tests" / "recorded"
READING = (
    "explain trace.json.gz",
    "explain trace.json.gz --format json",
    "report trace.json.gz -o page.html",
    "diff trace.json.gz trace.json.gz",
    "export trace.json.gz --to speedscope -o out.speedscope.json",
    "export trace.json.gz --to perfetto -o out.json.gz",
    "cut trace.json.gz --window 0-900 -o small.json.gz",
    "merge ranks -o merged.json.gz",
    "gate counts.json",
    "memory snapshot.pickle",
    "rule B9",
    "info",
)
RECORDING = ("profile script.py", "measure 1+1", "experiment peaks")
START_S = 0.4
"""Processor seconds of `torchwhy explain` on a small trace; on a slow machine, five times those of NumPy's import."""


def main() -> int:
    """Return 0 where everything is as it must be."""
    if find_spec("torch") is not None:
        sys.exit("error: PyTorch is installed here")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _prepare(folder)
        for words in READING:
            ran = _run(words, folder)
            if ran.returncode:
                sys.exit(f"error: torchwhy {words} ended with {ran.returncode}: {ran.stderr}")
            print(f"ok: torchwhy {words}")
        for words in RECORDING:
            ran = _run(words, folder)
            if ran.returncode != 3 or "pip install torch" not in ran.stderr:
                sys.exit(f"error: torchwhy {words} must say what to install: {ran.returncode}, {ran.stderr}")
            print(f"ok: torchwhy {words} says what to install")
        spent = min(_processor_s(("-m", "torchwhy", "explain", "trace.json.gz"), folder) for _ in range(5))
        numpy = min(_processor_s(("-c", "import numpy"), folder) for _ in range(5))
    print(f"torchwhy explain takes {spent:.2f} s of processor time, to import NumPy alone {numpy:.2f} s")
    return 0 if spent < max(START_S, 5 * numpy) else 1


def _prepare(folder: Path) -> None:
    (folder / "trace.json.gz").write_bytes((RECORDED / "training_step.json.gz").read_bytes())
    for name in ("counts.json", "snapshot.pickle"):
        (folder / name).write_bytes((RECORDED / name).read_bytes())
    (folder / "ranks").mkdir()
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    for rank in range(2):
        trace = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": [event]}
        (folder / "ranks" / f"rank{rank}.json").write_text(json.dumps(trace))
    (folder / "pyproject.toml").write_text("[tool.torchwhy.budgets]\noperators__max = 9\n")


def _run(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return _python(("-m", "torchwhy", *words.split()), folder)


def _python(words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)


def _processor_s(words: tuple[str, ...], folder: Path) -> float:
    before = os.times()
    _python(words, folder)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    sys.exit(main())
