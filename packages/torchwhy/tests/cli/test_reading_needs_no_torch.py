"""What reads traces imports no PyTorch, whatever it reads and in whatever form it answers."""

import json
import subprocess
import sys

import pytest
import torch

import torchwhy
from tests.allocator.snapshots import Allocator
from tests.difference.pairs import loop
from tests.ranks.jobs import write_job
from torchwhy.present.formats import FORMATS
from torchwhy.trace.tables.sql import RELATIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One of each thing there is to read."""
    made = tmp_path_factory.mktemp("reading")
    loop([1000] * 5).write(made / "a.json")
    loop([1250] * 5, kernels=3).write(made / "b.json")
    loop([1000] * 3, gpu=False).write(made / "cpu.json")
    write_job(made / "job", compute=[100, 200], ranks=2)
    write_job(made / "later", compute=[100, 100], ranks=2)
    allocator = Allocator()
    allocator.alloc(1000, ("train.py", 3, "train"))
    allocator.write(made / "snapshot.pickle")
    with torchwhy.count() as counts:
        torch.ones(2).cos()
    counts.save(made / "run")
    (made / "pyproject.toml").write_text("[tool.torchwhy.budgets]\noperators__max = 9\n")
    return made


READING = {
    "explain": [["a.json"], ["job"], ["cpu.json", "-v"], *(["a.json", "--format", form] for form in FORMATS)],
    "explain --table": [["a.json", "--table", table] for table in RELATIONS if table != "events"],
    "report": [["a.json"], ["job"], ["a.json", "b.json"]],
    "diff": [["a.json", "b.json"], ["job", "later"], *(["a.json", "b.json", "--format", form] for form in FORMATS)],
    "rule": [[], ["B9"]],
    "cut": [["a.json", "--steps", "6", "-o", "small.json.gz"]],
    "export": [["a.json", "--to", to] for to in ("speedscope", "perfetto", "csv")],
    "merge": [["job", "-o", "merged.json.gz"]],
    "memory": [["snapshot.pickle"]],
    "gate": [["run"], *(["run", "--format", form] for form in FORMATS)],
    "history": [["add", "a.json", "job"], ["check"], ["page"], *(["check", "--format", form] for form in FORMATS)],
    "view": [["a.json", "--no-open"]],
}

CODE = """
import contextlib, io, json, sys
from torchwhy.cli import main, view
view.WAIT_S = 0.0  # nobody opens the page
found = []
for words in json.loads(sys.argv[1]):
    sys.argv, ended = ["torchwhy", *words], None
    try:
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            main()
    except SystemExit as end:
        ended = end.code or 0
    found.append([words, ended, [name for name in ("torch", "pandas", "matplotlib") if name in sys.modules]])
print(json.dumps(found))
"""


def test_reading_commands_import_no_torch(folder):
    """In one process, whose start takes longer than most commands: the first that imports it is named."""
    cases = [[*command.split()[:1], *words] for command in READING for words in READING[command]]
    ran = subprocess.run([sys.executable, "-c", CODE, json.dumps(cases)], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    for words, ended, imported in json.loads(ran.stdout):
        nobody_took_it = 3 if words[0] == "view" else 0
        assert (ended, imported) == (nobody_took_it, []), (words, ran.stderr)
