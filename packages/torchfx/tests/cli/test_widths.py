"""Whatever a command prints fits the terminal, at 80 and at 120 columns, and nothing of it is lost."""

import re

import numpy as np
import pytest
from tests.command import run_here

from torchfx.cli import console
from torchfx.cli.app import app

LONG = "a rather long name of a recording that goes on and on beyond what any terminal shows at once"
FEW_WORDS = {
    *("completion", "concat", "convert", "features", "live", "mix", "play", "process", "record", "spectrogram"),
    *("split", "suggest", "synth", "trim", "watch"),
}
"""Commands that write, play or draw, and tell that in a sentence."""
CALLS = [
    ("stats", f"{LONG}.wav", "b.wav"),
    ("info", f"{LONG}.wav", "b.wav"),
    ("info", f"{LONG}.wav", "b.wav", "--loudness"),
    ("info",),
    ("effects",),
    ("response", "-e", "parametriceq:1kHz,q=0.7,gain_db=6", "-e", "hibutterworth:80Hz"),
    ("demo",),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from scipy.io import wavfile

    found = tmp_path_factory.mktemp("audio")
    noise = np.random.default_rng(0).standard_normal((48_000, 2)).astype(np.float32) / 8
    for name in (LONG, "b"):
        wavfile.write(found / f"{name}.wav", 48_000, noise)
    return found


@pytest.fixture(params=[80, 120])
def width(request, monkeypatch):
    """Columns of a terminal: what isn't one is as wide as anything."""
    monkeypatch.setattr(console, "WIDEST", request.param)
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def test_every_command_that_prints_text_is_called_here():
    named = {each.name or each.callback.__name__ for each in app.registered_commands}
    assert named - FEW_WORDS == {call[0] for call in CALLS}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call)[-24:])
def test_every_line_fits(folder, call, width):
    ran = run_here(*call, folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stdout.splitlines() if len(line) > width] == []


@pytest.mark.parametrize("call", [call for call in CALLS if "b.wav" in call], ids=lambda call: " ".join(call)[-24:])
def test_words_of_titles_and_numbers_stay_whole_and_names_complete(folder, call, width):
    text = run_here(*call, folder=folder).stdout
    wide = re.sub(r"\s+", " ", run_here(*call, folder=folder, environment={"COLUMNS": "1000"}).stdout)
    for word in re.findall(r"\b(?:integrated|momentary|short-term|channels|seconds|LUFS|dBTP)\b", wide):
        assert word in text.split()
    assert {"1.00"} <= set(text.split())
    assert [word for word in f"{LONG}.wav".split() if word not in text.split()] == []
