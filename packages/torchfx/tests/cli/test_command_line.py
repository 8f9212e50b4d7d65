"""`torchfx` as a person runs it: answers on stdout, trouble on stderr, exit statuses."""

import ast
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest
import soundfile
import torch

from command import run_apart, run_here
from torchfx import audio_io
from torchfx.catalogue import available
from torchfx.cli import process
from torchfx.cli.request import Request
from torchfx.demo import run as demo
from torchfx.errors import AudioFileError
from torchfx.spec import example_text


@pytest.fixture
def talk(tmp_path):
    noise = torch.rand(1, 16000, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save(tmp_path / "talk.wav", noise, 16000, bits_per_sample=16)
    return tmp_path / "talk.wav"


def test_process_one_file(tmp_path, talk):
    ran = run_apart(
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
    ran = run_here("info", folder=tmp_path)
    assert ran.returncode == 0
    for word in ("torchfx", "torch", "python", "threads", "cpu path", "gpu"):
        assert re.search(rf"^{word} +\S", ran.stdout, re.MULTILINE)
    without = run_apart("info", folder=tmp_path, environment={"TORCHFX_NATIVE": "0"})
    assert "reference in plain PyTorch" in re.search(r"cpu path +(.*)", without.stdout)[1]


def test_the_reference_path_filters_files_too(tmp_path, talk):
    effects = ["lochebyshev1:2kHz,order=8", "designablefir:3kHz,101"]
    options = [option for effect in effects for option in ("-e", effect)]
    slow = run_apart("process", talk, "reference.wav", *options, folder=tmp_path, environment={"TORCHFX_NATIVE": "0"})
    assert slow.returncode == 0
    assert process.run([str(talk), str(tmp_path / "native.wav")], Request(effects)) == 0
    native, reference = (audio_io.load(tmp_path / name)[0] for name in ("native.wav", "reference.wav"))
    assert torch.allclose(native, reference, atol=2**-15)


def test_effects_lists_every_name_in_80_columns(tmp_path):
    ran = run_here("effects", folder=tmp_path, environment={"COLUMNS": "80"})
    assert max(map(len, ran.stdout.splitlines())) <= 80
    listed = [line.split()[0] for line in ran.stdout.splitlines() if re.match(r"  \w", line)]
    assert sorted(listed) == sorted(available())
    assert "\nCompressor, expander and noise gate: gains that follow the level\n  compressor " in ran.stdout


def test_effects_of_a_name_says_ranges_units_and_defaults(tmp_path):
    for name, entry in available().items():
        ran = run_here("effects", name, folder=tmp_path, environment={"COLUMNS": "80"})
        assert ran.returncode == 0
        *lines, _ = ran.stdout.splitlines()  # an example is one line, to be copied
        assert max(map(len, lines)) <= 80
        assert f"-e '{example_text(entry)}'" in ran.stdout
        for each in entry.declarations:
            assert re.search(rf"^  {each.name} +(required|default)", ran.stdout, re.MULTILINE)
            assert each.documentation() in " ".join(ran.stdout.split())
    page = run_here("effects", "Compressor", folder=tmp_path).stdout
    assert re.search(r"threshold_db +default -20; level where compression begins; in \[-200, 200\] dB", page)
    wrong = run_here("effects", "compresser", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "error: there is no filter or effect 'compresser'; did you mean 'compressor'?\n"


def test_effects_as_json_has_all_of_it(tmp_path):
    found = json.loads(run_here("effects", "--format", "json", folder=tmp_path).stdout)["effects"]
    assert found.keys() == available().keys()
    assert found["hichebyshev1"]["parameters"] == "cutoff,order=2,ripple=0.5,fs=None"
    assert found["hichebyshev1"]["example"] == "hichebyshev1:1kHz"


@pytest.mark.parametrize("matplotlib", [pytest.param(True, marks=pytest.mark.many), False])
def test_demo_runs_twice(tmp_path, monkeypatch, matplotlib):
    if not matplotlib:
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    for folder in ("torchfx-demo", "torchfx-demo-2") if matplotlib else ("torchfx-demo",):
        ran = run_here("demo", folder=tmp_path)
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
    with pytest.raises(AudioFileError, match=r"cannot write into .*file"):
        demo.run(locked)


@pytest.mark.parametrize("package", ["torchfx", "torchwhy"])
def test_an_option_that_commands_share_is_declared_once(package):
    folder = Path(__file__).parents[3] / package / "src" / package / "cli"
    nodes = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    made = [ast.unparse(node) for node in nodes if isinstance(node, ast.Call)]
    options = [text for text in made if text.startswith("typer.Option(")]
    assert len(options) > 20
    assert [text for text, times in Counter(options).items() if times > 1] == []
