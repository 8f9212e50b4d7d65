"""The commands that pages show run as they stand there, one after the other."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile

from command import run_here
from torchfx import audio_io

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = {"reference", "commands", "programs"}
"""Folders of pages that the build of the sites writes; their examples are made of what other tests run."""
PAGES = sorted(
    path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in GENERATED
)
NEEDS_A_DEVICE = {"live", "play", "record"}


def commands(page):
    """Return the commands in a page's blocks of shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.startswith("torchfx ")]


HUM = [words[1:] for words in commands("how-to.md") if any(word.startswith("comb:") for word in words)]


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("words", "mains_hz"), [(words, 50 + 10 * ("comb:60,q=10" in words)) for words in HUM])
def test_the_page_about_hum_removes_each_harmonic_and_keeps_the_rest(words, mains_hz, tmp_path):
    fs, harmonics = 44_100, mains_hz * np.arange(1, 9)
    t = np.arange(3 * fs) / fs
    song = 0.1 * np.sin(2 * np.pi * 985 * t) + sum(0.03 * np.sin(2 * np.pi * hz * t + hz) for hz in harmonics)
    (tmp_path / "songs").mkdir()
    audio_io.save(tmp_path / "songs" / "a.mp3", song[None], fs, bitrate=192_000)
    assert run_here(*words, folder=tmp_path).returncode == 0
    before, after = (audio_io.load(tmp_path / name / "a.mp3")[0][0, fs : 2 * fs].numpy() for name in words[1:3])
    change_db = 20 * np.log10(np.abs(np.fft.rfft(after)) / np.abs(np.fft.rfft(before)))
    assert (change_db[harmonics] < -30).all()
    assert abs(change_db[985]) < 0.3


def test_pages_have_commands():
    assert sum(len(commands(page)) for page in PAGES) > 12
    assert len(HUM) == 2
