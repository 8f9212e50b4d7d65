"""The command `torchwhy` as tests run it: in this process, which saves its start, or in one of its own."""

import io
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from torchwhy.cli import main


@contextmanager
def working_in(folder):
    """Change the working directory; `contextlib.chdir` came with Python 3.11."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_here(*arguments, folder, environment=None):
    """Run the command in this process; return its exit status and what it wrote, as `subprocess.run` does."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    words = ["torchwhy", *map(str, arguments)]
    status = 0
    with (
        working_in(folder),
        mock.patch.dict(os.environ, {"NO_COLOR": "1", **(environment or {})}),
        mock.patch.multiple(sys, argv=words, stdout=out, stderr=err),
    ):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    return subprocess.CompletedProcess(words, status, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def run_apart(*arguments, folder, environment=None, text=True, **options):
    """Run the command in a process of its own, where streams, encodings or what was imported matter."""
    return subprocess.run(
        [sys.executable, "-m", "torchwhy", *map(str, arguments)],
        capture_output=True, cwd=folder, timeout=120, check=False, text=text, encoding="utf-8" if text else None,
        env={**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", **(environment or {})}, **options,
    )  # fmt: skip
