"""`torchfx` as a person runs it: answers on stdout, trouble on stderr, exit statuses."""

import os
import re
import subprocess
import sys

import pytest
import soundfile
import torch

from torchfx import audio_io
from torchfx.cli import process


def torchfx(*arguments, folder, **environment):
    return subprocess.run(
        [sys.executable, "-m", "torchfx", *map(str, arguments)],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "NO_COLOR": "1", **environment}, timeout=120,
    )  # fmt: skip


@pytest.fixture
def talk(tmp_path):
    noise = torch.rand(1, 16000, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save(tmp_path / "talk.wav", noise, 16000, bits_per_sample=16)
    return tmp_path / "talk.wav"


def test_process_one_file(tmp_path, talk):
    ran = torchfx(
        "process",
        talk,
        "out.flac",
        "--effect",
        "hibutterworth:cutoff=80,order=4",
        "--effect",
        "gain:-3dB",
        folder=tmp_path,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{talk} -> out.flac (1.00 s)\n"
    assert soundfile.info(tmp_path / "out.flac").frames == 16000


def test_info_names_what_is_in_use(tmp_path):
    ran = torchfx("info", folder=tmp_path)
    assert ran.returncode == 0
    for word in ("torchfx", "torch", "python", "threads", "cpu path", "gpu"):
        assert re.search(rf"^{word} +\S", ran.stdout, re.MULTILINE)
    without = torchfx("info", folder=tmp_path, TORCHFX_NATIVE="0")
    assert "reference in plain PyTorch" in re.search(r"cpu path +(.*)", without.stdout)[1]


def test_the_reference_path_filters_files_too(tmp_path, talk):
    effects = ["lochebyshev1:2kHz,order=8", "designablefir:3kHz,101"]
    options = [option for effect in effects for option in ("-e", effect)]
    assert torchfx("process", talk, "reference.wav", *options, folder=tmp_path, TORCHFX_NATIVE="0").returncode == 0
    assert process.run([str(talk), str(tmp_path / "native.wav")], effects, force=False, allow_nan=False) == 0
    native, reference = (audio_io.load(tmp_path / name)[0] for name in ("native.wav", "reference.wav"))
    assert torch.allclose(native, reference, atol=2**-15)


def test_effects_lists_names_and_defaults(tmp_path):
    ran = torchfx("effects", folder=tmp_path)
    assert "hichebyshev1:cutoff,order=2,ripple=0.5,fs=None" in ran.stdout
    assert "normalize:peak=1.0" in ran.stdout


@pytest.mark.parametrize("matplotlib", [pytest.param(True, marks=pytest.mark.many), False])
def test_demo_runs_twice(tmp_path, matplotlib):
    environment = {}
    if not matplotlib:  # a module of that name that cannot be found stands in the way
        (tmp_path / "hide").mkdir()
        (tmp_path / "hide" / "sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\n"
            "u.find_spec = lambda name, package=None: None if name == 'matplotlib' else find(name, package)\n"
        )
        environment["PYTHONPATH"] = str(tmp_path / "hide")
    for folder in ("torchfx-demo", "torchfx-demo-2") if matplotlib else ("torchfx-demo",):
        ran = torchfx("demo", folder=tmp_path, **environment)
        assert ran.returncode == 0, ran.stderr
        made = tmp_path / folder
        assert f"{made}/" in ran.stdout
        assert {"before.wav", "after.wav"} <= {path.name for path in made.iterdir()}
        assert (made / "spectrum.png").exists() == matplotlib
        assert ("pip install matplotlib" in ran.stdout) != matplotlib
    assert "-> 1 operator call" in ran.stdout
    assert float(re.search(r"deviation +(\S+) of the peak", ran.stdout)[1]) < 2e-7
    before, after = (soundfile.info(made / name) for name in ("before.wav", "after.wav"))
    assert (before.channels, before.duration) == (after.channels, after.duration) == (2, 30.0)


def test_demo_in_a_folder_it_cannot_write(tmp_path):
    locked = tmp_path / "file"
    locked.write_text("")
    ran = subprocess.run(
        [sys.executable, "-c", "from pathlib import Path; from torchfx.demo.run import run; run(Path('file'))"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert "AudioFileError: cannot write into file" in ran.stderr
