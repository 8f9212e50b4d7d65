"""The command starts at once: it imports only modules that its answer needs."""

import json
import subprocess
import sys

import pytest

from tests.difference.pairs import loop

PACKAGES = ["torch", "torchfx", "matplotlib", "pandas", "pyarrow", "duckdb", "scipy", "soundfile", "numpy.testing"]
HELP = ["rich", "pygments", "markdown_it", "logging"]  # typer draws its help with them
STANDARD = [
    "asyncio",
    "concurrent.futures",
    "http.server",
    "multiprocessing",
    "sqlite3",
    "ssl",
    "unittest",
    "numpy.testing",
]
OWN = [f"torchwhy.{name}" for name in ("capture", "experiment", "page", "present.html", "timing", "view")]

CODE = """
import contextlib, io, json, sys
from torchwhy.cli import main
words, slow = json.loads(sys.argv[1])
sys.argv = ["torchwhy", *words]
with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")), contextlib.suppress(SystemExit):
    main()
print(json.dumps([name for name in slow if name in sys.modules]))
"""


def imported(folder, *words, slow):
    ran = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps([words, slow])], capture_output=True, text=True, cwd=folder, check=True
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("gpu", [True, False], ids=["gpu", "cpu"])
def test_explaining_a_small_trace_imports_nothing_slow(gpu, tmp_path):
    loop([1000] * 3, gpu=gpu).write(tmp_path / "small.json")
    # The vocabulary of an installed torchfx is asked for, without what it computes with.
    slow = [*(name for name in PACKAGES if name != "torchfx"), *HELP, *STANDARD, *OWN]
    assert imported(tmp_path, "explain", "small.json", slow=slow) == []


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_help_and_version_read_no_traces(word, tmp_path):
    assert imported(tmp_path, word, slow=[*PACKAGES, *STANDARD, *OWN, "numpy", "msgspec"]) == []
