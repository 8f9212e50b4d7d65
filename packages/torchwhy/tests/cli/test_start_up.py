"""The command starts at once: it imports only modules that its answer needs."""

import json
import subprocess
import sys

import pytest

from tests.difference.pairs import loop

SLOW = (
    "torch torchfx matplotlib pandas pyarrow duckdb scipy IPython "  # other packages
    "rich pygments markdown_it "  # typer draws its help with them
    "asyncio concurrent.futures http.server logging multiprocessing sqlite3 ssl unittest "
    "torchwhy.capture torchwhy.experiment torchwhy.page torchwhy.present.html torchwhy.timing torchwhy.view"
).split()

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
    slow = [name for name in SLOW if name != "torchfx"]
    assert imported(tmp_path, "explain", "small.json", slow=slow) == []


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_help_and_version_read_no_traces(word, tmp_path):
    slow = [name for name in [*SLOW, "numpy", "msgspec"] if name not in {"rich", "pygments", "markdown_it", "logging"}]
    assert imported(tmp_path, word, slow=slow) == []
