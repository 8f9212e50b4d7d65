"""Whatever a command prints fits the terminal, at 80 and at 120 columns, however long the names are."""

import json
import re

import pytest

from tests.allocator.test_memory_page import LINEAR, NET
from tests.allocator.test_snapshot import training
from tests.command_line import run_here
from tests.traces import Story
from torchwhy import load
from torchwhy.cli.app import app
from torchwhy.present.options import Options
from torchwhy.present.style import Style
from torchwhy.present.text import render
from torchwhy.present.trace_table import trace_table
from torchwhy.trace.tables.sql import RELATIONS

LONG = "a_rather_long_name_of_a_function_that_goes_on_and_on_beyond_what_any_terminal_shows"
NEVER_READ = {"profile", "measure", "experiment", "view", "report", "cut", "merge", "export", "info", "gate"} | {
    "mcp", "skill", "bisect", "try",
}  # fmt: skip
"""Commands that run something, write a file, or print no table."""


def story(factor=1):
    made = Story()
    for i in range(4):
        at = 100_000 * i
        made.step(i + 1, at=at, us=99_000)
        made.note(f"{LONG}_label", at=at + 10, us=40_000)
        for k in range(6):
            start = at + 51_000 + 4_000 * k
            made.op(f"{LONG}::op{k % 3}", at=start, us=3_900)
            name = f"void at::native::{LONG}_kernel{k % 3}<float, {LONG}>(int, {LONG})"
            made.kernel(name, at=start + 500, us=800 * factor, launch_at=start + 300)
        made.copy("HtoD (Pageable -> Device)", at=at + 41_100, us=8_000, size=40_000_000, launch_at=at + 41_050)
        made.memory(at + 52_000, 3_000_000_000, 3_000_000_000 * (i + 1), 14_000_000_000, addr=i + 1)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp(LONG)
    story().write(found / f"{LONG}.json")
    story(2).write(found / "after.json")
    memory = training()
    memory.alloc(7_000_000, *[(f"/home/me/{LONG}/{LONG}.py", n, f"{LONG}") for n in range(3)])
    memory.alloc(8_000_000, LINEAR, (f"/home/me/{LONG}.py", 9, "forward"), NET)
    memory.oom(10**9, 5_000, LINEAR)
    memory.write(found / "a.pickle")
    training().write(found / "b.pickle")
    (found / "counts.json").write_text(json.dumps({}))
    return found


def calls():
    yield "explain", (f"{LONG}.json",)
    yield "explain", (f"{LONG}.json", "-v")
    yield "diff", (f"{LONG}.json", "after.json")
    yield "diff", (f"{LONG}.json", "after.json", "-v")
    for command in ("finding", "evidence", "timeline"):
        yield command, (f"{LONG}.json", "C1", "--format", "text")
    yield "memory", ("a.pickle",)
    yield "memory", ("a.pickle", "-v")
    yield "memory", ("a.pickle", "b.pickle")
    yield "memory", (f"{LONG}.json", "-v")
    yield "history", ("add", f"{LONG}.json", "--commit", "a" * 40)
    yield "history", ("check",)
    yield "rule", ()
    yield "rule", ("B9",)


def too_wide(text, width):
    return [line for line in text.splitlines() if len(line) > width]


def test_every_command_that_prints_tables_is_called_here():
    named = {each.name or each.callback.__name__ for each in app.registered_commands}
    assert named - NEVER_READ == {name for name, _ in calls()}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("call", [*calls()], ids=lambda call: " ".join((call[0], *call[1]))[-30:])
def test_every_line_fits(folder, call, width):
    ran = run_here(call[0], *call[1], folder=folder, environment={"COLUMNS": str(width)})
    assert ran.returncode == 0, ran.stderr
    assert too_wide(ran.stdout, width) == []


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", RELATIONS)
def test_every_line_of_a_table_fits(folder, name, width):
    path = folder / f"{LONG}.json"
    document = trace_table(RELATIONS[name](load(path)), name, path.name, 50)
    assert too_wide(render([document], Options(Style(width, unicode=True))), width) == []


def test_nothing_of_a_table_is_a_number_cut(folder):
    text = run_here("memory", "a.pickle", folder=folder, environment={"COLUMNS": "80"}).stdout
    assert re.search(r"^ +8\.00 MB +\d+% +1  other", text, re.M)
