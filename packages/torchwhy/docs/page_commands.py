"""The commands that pages show, in blocks of this form:

    ```{run}
    :shows: waiting for the next batch | dataloader-wait
    torchwhy explain training_step.json.gz
    ```

Sphinx (`command_outputs.py`) shows what they print, so that no output is typed, and
`tests/test_documentation_pages.py` runs them too. They run in a folder with the traces of `tests/tutorial_traces.py`,
which all blocks of a page share. `:status:` is the exit status of the last command (0 if left out). `:shows:` lists
texts that the outputs must contain, separated by `|`: those that the page's own text relies on.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.command_line import run_here
from tests.tutorial_traces import write_traces

WIDTH = 88
"""Columns of the outputs: what fits into a page."""

BLOCK = re.compile(r"^```\{run\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r":(status|shows): *(.+)")


@dataclass(frozen=True)
class Block:
    """Commands of a page, the exit status of the last, and texts that their outputs must contain."""

    commands: tuple[str, ...]
    status: int = 0
    shows: tuple[str, ...] = ()


class PageError(Exception):
    """A command of a page did not do what the page says."""


def block_of(text: str) -> Block:
    """Return the block with these lines."""
    lines = [line for line in text.splitlines() if line.strip()]
    options = {found[1]: found[2] for line in lines if (found := OPTION.fullmatch(line))}
    shows = tuple(part.strip() for part in options.get("shows", "").split("|") if part.strip())
    commands = tuple(line for line in lines if not OPTION.fullmatch(line))
    return Block(commands, int(options.get("status", 0)), shows)


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the blocks of a page's Markdown in order."""
    return (block_of(found[1]) for found in BLOCK.finditer(page))


def working_copy() -> tempfile.TemporaryDirectory[str]:
    """Return a new folder with the traces of the tutorials."""
    folder = tempfile.TemporaryDirectory(prefix="torchwhy-page-")
    shutil.copytree(_traces().name, folder.name, dirs_exist_ok=True)
    return folder


@cache
def _traces() -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="torchwhy-traces-")
    write_traces(Path(folder.name))
    return folder


def run(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run `torchwhy` in this process, which saves its start; return its exit status and what it printed."""
    ended = run_here(*words, folder=folder, environment={"COLUMNS": str(WIDTH)})
    return ended.returncode, ended.stdout + ended.stderr


def outputs(block: Block, folder: Path) -> list[str]:
    """Run a block's commands in a folder and return what each prints.

    Raises:
        PageError: the exit status or the output is not what the block says.
    """
    found = []
    for place, command in enumerate(block.commands):
        program, *words = shlex.split(command)
        if program != "torchwhy":
            raise PageError(f"a page may run torchwhy only, got {command!r}")
        wanted = block.status if place == len(block.commands) - 1 else 0
        status, text = run(words, folder)
        if status != wanted:
            raise PageError(f"{command!r} ended with status {status}, not {wanted}:\n{text}")
        found.append(text.rstrip())
    words_of_all = " ".join(" ".join(found).split())
    for part in block.shows:
        if " ".join(part.split()) not in words_of_all:
            raise PageError(f"{block.commands} do not print {part!r} but:\n" + "\n".join(found))
    return found
