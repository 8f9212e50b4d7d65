"""The tables of the pages for those who come from other libraries: each of our lines runs.

Rows that say "equal" are compared with the other library, where that is installed.
"""

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.signal
import soundfile
import torch

import torchfx as fx
from command import run_here, working_in
from torchfx import augment, functional, spectral
from torchfx.design.mel import mel_filters

DOCS = Path(__file__).parents[1] / "docs"
IN_FILES = 1 / 30_000
"""A step of 16 bits, of full scale."""


def rows(library):
    """Return (theirs, ours, results) of a page's table."""
    page = (DOCS / f"from-{library}.md").read_text().partition("<!-- rows -->")[2].replace("\\|", "\0")
    cells = [[cell.strip().replace("\0", "|") for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    return [(each[0].strip("`"), each[1].strip("`"), each[2]) for each in cells if each and each[0].startswith("`")]


def one_for_each_row(library):
    return pytest.mark.parametrize(("theirs", "ours", "results"), rows(library), ids=[row[1] for row in rows(library)])


def array(value):
    if isinstance(value, fx.Wave):
        value = value.ys
    found = value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    return np.atleast_1d(np.squeeze(found))


def check(theirs, ours, names, tolerance, after=0):
    """Evaluate both, and compare them, after so many samples."""
    expected, found = array(eval(theirs, names)), array(eval(ours, names))
    assert found.shape == expected.shape
    assert np.abs(found - expected)[..., after:].max() <= tolerance * np.abs(expected).max()


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_normal((2, 4800))


@one_for_each_row("scipy")
def test_lines_of_scipy(theirs, ours, results, x):
    names = {**vars(scipy.signal), **vars(np), "np": np, "torch": torch, "fx": fx, "functional": functional}
    b, a = scipy.signal.butter(2, 2000, fs=48_000)
    names |= {"x": x, "xs": torch.from_numpy(x), "wave": fx.Wave(x, 48_000), "fs": 48_000, "b": b, "a": a}
    names |= {"sos": scipy.signal.ellip(4, 1, 60, 3000, fs=48_000, output="sos"), "taps": scipy.signal.firwin(31, 0.3)}
    if results == "equal":
        check(theirs, ours, names, 1e-9)
    else:
        assert np.isfinite(array(eval(ours, names))).all()


@pytest.mark.filterwarnings("ignore:'(aifc|sunau|audioop)' is deprecated:DeprecationWarning")  # audioread imports them
@one_for_each_row("librosa")
def test_lines_of_librosa(theirs, ours, results, x, tmp_path):
    y = (0.1 * x.reshape(-1)).astype(np.float32)
    soundfile.write(tmp_path / "talk.wav", y, 22_050, subtype="FLOAT")
    names = {name: getattr(spectral, name) for name in spectral.__all__}
    names |= {"np": np, "fx": fx, "functional": functional, "mel_filters": mel_filters}
    names |= {"y": y, "sr": 22_050, "wave": fx.Wave(y, 22_050)}
    with working_in(tmp_path):
        eval(ours, names)
        if results.startswith("equal"):
            check(theirs, ours, {**names, "librosa": pytest.importorskip("librosa")}, 1e-4)


@one_for_each_row("audiomentations")
def test_lines_of_audiomentations(theirs, ours, results, x, tmp_path):
    samples = (0.1 * x.reshape(-1)).astype(np.float32)
    for folder in ("noises", "rooms"):
        (tmp_path / folder).mkdir()
        soundfile.write(tmp_path / folder / "one.wav", samples[:2000], 16_000)
    names = {"fx": fx, "augment": augment, "samples": samples, "x": torch.from_numpy(samples)[None, None]}
    with working_in(tmp_path), fx.sample_rate(16_000):
        assert bool(eval(ours, names).isfinite().all())
        if results.startswith("equal"):
            after = 1600 if results.startswith("equal after 0.1 s") else 0
            check(theirs, ours, {**names, "A": pytest.importorskip("audiomentations")}, 1e-3, after)


@one_for_each_row("sox")
def test_lines_of_sox(theirs, ours, results, x, tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        soundfile.write(tmp_path / folder / "in.wav", 0.1 * np.tile(x, 5).T, 48_000)
    ran = run_here(*shlex.split(ours)[1:], folder=tmp_path / "here")
    assert ran.returncode == 0, ran.stderr
    if results.startswith("equal"):
        if not shutil.which("sox"):
            pytest.skip("sox is not installed")
        subprocess.run(shlex.split(theirs.replace("sox ", "sox -D ", 1)), cwd=tmp_path / "there", check=True)
        name = shlex.split(theirs.partition(" gain ")[0])
        output = next(each for each in name if each.startswith("out."))
        expected, found = (soundfile.read(tmp_path / folder / output)[0] for folder in ("there", "here"))
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= IN_FILES


def test_each_page_has_rows():
    assert all(len(rows(library)) > 15 for library in ("scipy", "librosa", "audiomentations", "sox"))
