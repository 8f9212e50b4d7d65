"""The commands in the pages of the site end as the pages say and print what their text relies on."""

import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import torchwhy
from tests.command_line import working_in

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import page_commands
from page_commands import Block, PageError, block_of, blocks_of, outputs, run, working_copy

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): found
    for path in sorted(DOCS.rglob("*.md"))
    if (found := tuple(blocks_of(path.read_text(encoding="utf-8"))))
}


CODE = re.compile(r"`((?:trace|job|torchwhy)[ .][^`]*)`")
MOVES = {
    (path.stem, code): code
    for path in sorted((DOCS / "moving").glob("*.md"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("|")
    for code in CODE.findall(line.rstrip(" |").rpartition("| ")[2])
}
"""What the tables of the pages for those who move here say to write, in their last column."""


def test_the_tutorials_are_looked_at():
    assert sum(page.startswith("tutorial/") for page in PAGES) >= 5


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_do_what_it_says(page):
    with working_copy() as folder:
        for block in PAGES[page]:
            outputs(block, Path(folder))


def test_a_block_has_commands_a_status_and_texts():
    text = ":status: 1\n:shows: one thing | another\ntorchwhy explain a.json\n\ntorchwhy rule B9\n"
    wanted = Block(("torchwhy explain a.json", "torchwhy rule B9"), 1, ("one thing", "another"))
    assert block_of(text) == wanted
    assert list(blocks_of(f"Words.\n\n```{{run}}\n{text}```\n\nMore.\n")) == [wanted]


@pytest.mark.parametrize(
    ("block", "answer", "error"),
    [
        (Block(("torchwhy explain a",)), (3, "no such file"), "ended with status 3, not 0"),
        (Block(("torchwhy a", "torchwhy b"), status=1), (1, ""), "'torchwhy a' ended with status 1, not 0"),
        (Block(("torchwhy explain a",), shows=("the loader",)), (0, "the optimizer"), "do not print 'the loader'"),
        (Block(("rm -r .",)), (0, ""), "may run torchwhy only"),
    ],
)
def test_a_page_that_is_wrong_is_refused(block, answer, error, monkeypatch):
    monkeypatch.setattr(page_commands, "run", lambda words, folder: answer)
    with pytest.raises(PageError, match=error):
        outputs(block, DOCS)


def test_line_breaks_of_an_output_do_not_matter(monkeypatch):
    monkeypatch.setattr(page_commands, "run", lambda words, folder: (0, "a\n  b\n"))
    assert outputs(Block(("torchwhy x",), shows=("a b",)), DOCS) == ["a\n  b"]


@pytest.fixture(scope="module")
def recorded():
    """A folder of traces, and the names that the tables use."""
    with working_copy() as folder, working_in(folder):
        job = torchwhy.load_job("eight_ranks", workers=1)
        yield Path(folder), {"torchwhy": torchwhy, "trace": torchwhy.load("training_step.json.gz"), "job": job}


@pytest.mark.parametrize("move", MOVES, ids=" ".join)
def test_what_a_table_says_to_write_answers(move, recorded):
    code, (folder, names) = MOVES[move], recorded
    if code.startswith("torchwhy "):
        status, text = run(shlex.split(code)[1:], folder)
        assert (status, bool(text.strip())) == (0, True), text
        return
    if "sql(" in code and find_spec("duckdb") is None:
        pytest.skip("trace.sql needs duckdb")
    with working_in(folder):
        assert str(eval(code, dict(names))).strip()


def test_each_page_for_those_who_move_has_lines():
    assert {page for page, _ in MOVES} == {path.stem for path in (DOCS / "moving").glob("*.md")}
    assert len(MOVES) > 20
