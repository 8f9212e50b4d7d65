"""The commands that tutorials and short answers show run as they stand there, one after the other."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile

from command import run_here

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "tutorials").glob("*.md")),
    "how-to.md",
    "presets.md",
]
NEEDS_A_DEVICE = {"live", "play", "record"}


def commands(page):
    """Return the commands in a page's blocks of shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.startswith("torchfx ")]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the files that the pages speak of."""
    x = 0.1 * np.random.default_rng(0).standard_normal((22_050, 2))
    for name in ("talk.wav", "room.wav", "songs/a.mp3", "archive/a.wav", "recordings/a.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        soundfile.write(tmp_path / name, x[:2000] if name == "room.wav" else x, 44_100)
    (tmp_path / "mine.toml").write_text("loudness = -16.0\ntrue_peak = -1.0\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands_of_a_page_run(page, folder):
    written = re.search(r"^```toml\n# mine.toml\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    if written:
        (folder / "mine.toml").write_text(written[1])
    for _, command, *words in commands(page):
        if command in NEEDS_A_DEVICE:
            continue
        words = [name for word in words for name in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]
        if command in {"process", "features"}:
            words += ["--engine", "threads"]
        ran = run_here(command, *words, folder=folder)
        assert ran.returncode == 0, (command, words, ran.stderr)


def test_pages_have_commands():
    assert sum(len(commands(page)) for page in PAGES) > 12
