"""`torchfx` as a person runs it: answers on stdout, trouble on stderr, exit statuses."""

import os
import re
import subprocess
import sys

import pytest
import soundfile
import torch

from torchfx import audio_io


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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize(
    ("name", "encoding", "shown"),
    [
        (b":cat:.wav", "utf-8", ":cat:.wav"),
        (b"caf\xe9.wav", "utf-8", "caf?.wav"),
        ("日本.wav".encode(), "ascii", "??.wav"),
    ],
)
def test_any_name_is_written_and_printed(tmp_path, talk, name, encoding, shown):
    ran = torchfx("process", talk, os.fsdecode(name), "-e", "gain:0.5", folder=tmp_path, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith(f"-> {shown} (1.00 s)\n")
    assert (tmp_path / os.fsdecode(name)).exists()


def test_process_many_files_with_one_bad(tmp_path, talk):
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    audio_io.save(tmp_path / "b.ogg", torch.zeros(1, 100), 8000)
    ran = torchfx("process", "talk.wav", "bad.wav", "b.ogg", "out", "-e", "gain:0.5", folder=tmp_path)
    assert ran.returncode == 1
    assert "error: cannot read bad.wav" in ran.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["b.ogg", "talk.wav"]
    again = torchfx("process", "talk.wav", "b.ogg", "out", "-e", "gain:0.5", folder=tmp_path)
    assert again.returncode == 1
    assert again.stderr.count("exists already; --force overwrites it") == 2
    forced = torchfx("process", "talk.wav", "b.ogg", "out", "-e", "gain:0.5", "--force", folder=tmp_path)
    assert forced.returncode == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.wav", b""), ("noise.wav", b"\x93" * 5000), ("text.xyz", b"hello"), ("missing.wav", None)],
)
def test_unreadable_files_are_one_line_and_status_3(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ran = torchfx("process", name, "out.wav", "-e", "gain:0.5", folder=tmp_path)
    assert ran.returncode == 3
    assert re.fullmatch(rf"error: cannot read {name}: .+\n", ran.stderr)
    assert not (tmp_path / "out.wav").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["talk.wav", "-e", "gain:1"], "needs one or more inputs and an output"),
        (["talk.wav", "out.wav", "-e", "gian:1"], "did you mean 'gain'?"),
        (["talk.wav", "out.wav", "-e", "hibutterworth:cutoff=9kHz"], "(0, 8000) Hz, got 9000"),
        (["talk.wav", "out.xyz", "-e", "gain:1"], "path must end in one of"),
        (["talk.wav", "talk.wav", "-e", "gain:1"], "exists already"),
        (["talk.wav", "out.wav"], "--effect"),
    ],
)
def test_misuse_is_status_2(tmp_path, talk, arguments, message):
    ran = torchfx("process", *arguments, folder=tmp_path)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["talk.wav"]


def test_info_names_what_is_in_use(tmp_path):
    ran = torchfx("info", folder=tmp_path)
    assert ran.returncode == 0
    for word in ("torchfx", "torch", "python", "threads", "cpu path", "gpu"):
        assert re.search(rf"^{word} +\S", ran.stdout, re.MULTILINE)
    without = torchfx("info", folder=tmp_path, TORCHFX_NATIVE="0")
    assert "reference in plain PyTorch" in re.search(r"cpu path +(.*)", without.stdout)[1]


def test_the_reference_path_filters_files_too(tmp_path, talk):
    effects = ["-e", "lochebyshev1:2kHz,order=8", "-e", "designablefir:3kHz,101"]
    for path, switch in (("native.wav", "1"), ("reference.wav", "0")):
        assert torchfx("process", talk, path, *effects, folder=tmp_path, TORCHFX_NATIVE=switch).returncode == 0
    native, reference = (audio_io.load(tmp_path / name)[0] for name in ("native.wav", "reference.wav"))
    assert torch.allclose(native, reference, atol=2**-15)


def test_effects_lists_names_and_defaults(tmp_path):
    ran = torchfx("effects", folder=tmp_path)
    assert "hichebyshev1:cutoff,order=2,ripple=0.5,fs=None" in ran.stdout
    assert "normalize:peak=1.0" in ran.stdout


@pytest.mark.parametrize("matplotlib", [True, False])
def test_demo_runs_twice(tmp_path, matplotlib):
    environment = {}
    if not matplotlib:  # a module of that name that cannot be found stands in the way
        (tmp_path / "hide").mkdir()
        (tmp_path / "hide" / "sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\n"
            "u.find_spec = lambda name, package=None: None if name == 'matplotlib' else find(name, package)\n"
        )
        environment["PYTHONPATH"] = str(tmp_path / "hide")
    for folder in ("torchfx-demo", "torchfx-demo-2"):
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
