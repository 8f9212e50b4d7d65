"""`torchfx process`: what is written, said and returned. It runs in this process unless signals end it."""

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchfx as fx
from torchfx import audio_io
from torchfx.cli import process
from torchfx.cli.app import app

FS = 16_000


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.fixture
def talk(folder):
    noise = torch.rand(1, FS, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save("talk.wav", noise, FS, bits_per_sample=16)
    return noise


@pytest.fixture
def torchfx(capsys):
    """The command, with its exit status, stdout and stderr."""

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            app(["process", *map(str, arguments)])
        said = capsys.readouterr()
        return caught.value.code or 0, said.out, said.err

    return run


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- where outputs go -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ("out.flac", "out.flac"),
        ("deep/er/out.flac", "deep/er/out.flac"),
        ("out/", "out/talk.wav"),
        ("out.wav/", "out.wav/talk.wav"),  # a trailing slash says more than a suffix
        ("a/b/c/", "a/b/c/talk.wav"),
        ("out", "out/talk.wav"),
        ("a/b/c", "a/b/c/talk.wav"),
    ],
)
def test_a_slash_or_no_suffix_makes_a_folder_and_parents_are_made(folder, torchfx, talk, output, written):
    status, out, err = torchfx("talk.wav", output, "-e", "gain:0.5")
    assert (status, err) == (0, "")
    assert out == f"talk.wav -> {written} (1.00 s)\n"
    assert files(folder) == sorted(["talk.wav", written])


def test_an_existing_folder_takes_the_sources_name(folder, torchfx, talk):
    (folder / "takes.2024").mkdir()
    assert torchfx("talk.wav", "takes.2024", "-e", "gain:0.5")[0] == 0
    assert files(folder) == ["takes.2024/talk.wav", "talk.wav"]


def test_a_new_folder_goes_with_the_failure(folder, torchfx, talk):
    assert torchfx("talk.wav", "a/b/", "-e", "lobutterworth:9kHz")[0] == 2
    assert [path.name for path in folder.iterdir()] == ["talk.wav"]


def test_many_files_with_one_bad(folder, torchfx, talk):
    (folder / "bad.wav").write_bytes(b"no audio")
    audio_io.save("b.ogg", torch.zeros(1, 100), 8000)
    status, out, err = torchfx("talk.wav", "bad.wav", "b.ogg", "out", "-e", "gain:0.5")
    assert status == 1
    assert out == "talk.wav -> out/talk.wav (1.00 s)\nb.ogg -> out/b.ogg (0.01 s)\n"
    assert re.fullmatch(r"error: cannot read bad\.wav: [^\n]+\n", err)
    assert files(folder / "out") == ["b.ogg", "talk.wav"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize(
    ("name", "encoding", "shown"),
    [
        (b":cat:.wav", "utf-8", ":cat:.wav"),
        (b"caf\xe9.wav", "utf-8", "caf?.wav"),
        ("日本.wav".encode(), "ascii", "??.wav"),
    ],
)
def test_any_name_is_written_and_printed(folder, talk, monkeypatch, name, encoding, shown):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert process.run(["talk.wav", os.fsdecode(name)], ["gain:0.5"], force=False, allow_nan=False) == 0
    stdout.flush()
    assert stdout.buffer.getvalue().decode(encoding) == f"talk.wav -> {shown} (1.00 s)\n"
    assert (folder / os.fsdecode(name)).exists()


# --- overwriting ------------------------------------------------------------------------------------------------------


def test_an_existing_output_stays_without_force(folder, torchfx, talk):
    (folder / "out.wav").write_bytes(b"what was there")
    status, out, err = torchfx("talk.wav", "out.wav", "-e", "gain:0.5")
    assert (status, out, err) == (2, "", "error: out.wav exists already; --force overwrites it\n")
    assert (folder / "out.wav").read_bytes() == b"what was there"
    assert torchfx("talk.wav", "out.wav", "-e", "gain:0.5", "--force")[0] == 0
    assert audio_io.info("out.wav").frames == FS


def test_some_existing_outputs_are_status_1(folder, torchfx, talk):
    audio_io.save("b.wav", torch.zeros(1, 100), 8000)
    for _ in range(2):
        status, out, err = torchfx("talk.wav", "b.wav", "out", "-e", "gain:0.5")
    assert (status, out) == (1, "")
    assert err.count("exists already; --force overwrites it") == 2
    assert torchfx("talk.wav", "b.wav", "out", "-f", "-e", "gain:0.5")[0] == 0


def test_force_may_replace_the_source(torchfx, talk):
    before = audio_io.load("talk.wav")[0]
    assert torchfx("talk.wav", "talk.wav", "-f", "-e", "gain:0.5", "-e", "normalize:0.25")[0] == 0
    after = audio_io.load("talk.wav")[0]
    assert torch.allclose(after, before / before.abs().max() / 4, rtol=0, atol=2**-15)
    assert audio_io.info("talk.wav").encoding == "PCM_16"


# --- NaN and infinity -------------------------------------------------------------------------------------------------


@pytest.fixture
def holed(folder):
    x = torch.zeros(2, 1000)
    x[0, 300] = x[1, 300] = x[1, 500] = float("nan")
    audio_io.save("holed.wav", x, FS)


@pytest.mark.parametrize(("options", "expected"), [([], 1), (["--allow-nan"], 0)])
def test_samples_that_are_not_finite_are_said_and_status_1_unless_allowed(torchfx, holed, options, expected):
    status, out, err = torchfx("holed.wav", "out.wav", "-e", "lobutterworth:1kHz", *options)
    assert status == expected
    assert out == "holed.wav -> out.wav (0.06 s)\n"
    assert err == (
        "warning: holed.wav: 3 samples are NaN or infinite, the first in frame 300\n"
        "warning: out.wav: 1400 samples are NaN or infinite, the first in frame 300\n"
    )


@pytest.mark.parametrize(("options", "expected"), [([], 1), (["--allow-nan"], 0)])
def test_infinities_that_an_effect_makes_are_said(torchfx, options, expected):
    audio_io.save("loud.wav", torch.tensor([[1.0, 3e38, -3e38]]), FS)
    status, _, err = torchfx("loud.wav", "out.wav", "-e", "gain:10", *options)
    assert status == expected
    assert err == "warning: out.wav: 2 samples are NaN or infinite, the first in frame 1\n"


def test_integers_cannot_hold_them_whatever_is_allowed(folder, torchfx, holed):
    status, out, err = torchfx("holed.wav", "out.flac", "-e", "gain:1", "--allow-nan")
    assert (status, out) == (2, "")
    assert "ys must be finite in a PCM_24 file, got 3 NaN or infinite samples, the first in frame 300" in err
    assert files(folder) == ["holed.wav"]


def test_normalize_cannot_measure_them(folder, torchfx, holed):
    status, _, err = torchfx("holed.wav", "out.wav", "-e", "normalize")
    assert status == 2
    assert "x must be finite to be normalised, got 3 NaN or infinite samples" in err
    assert files(folder) == ["holed.wav"]


def test_clipping_is_said_and_no_failure(torchfx, talk):
    status, _, err = torchfx("talk.wav", "out.wav", "-e", "gain:4")
    assert status == 0
    assert re.fullmatch(r"warning: out\.wav: \d+ of 16000 samples lie beyond full scale and were clipped .*\n", err)


# --- misuse, unreadable files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.wav", b""), ("noise.wav", b"\x93" * 5000), ("text.xyz", b"hello"), ("missing.wav", None)],
)
def test_unreadable_files_are_one_line_and_status_3(folder, torchfx, name, content):
    if content is not None:
        (folder / name).write_bytes(content)
    status, out, err = torchfx(name, "out.wav", "-e", "gain:0.5")
    assert (status, out) == (3, "")
    assert re.fullmatch(rf"error: cannot read {name}: .+\n", err)
    assert not (folder / "out.wav").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["talk.wav", "-e", "gain:1"], "needs one or more inputs and an output"),
        (["talk.wav", "out.wav", "-e", "gian:1"], "did you mean 'gain'?"),
        (["talk.wav", "out.wav", "-e", "hibutterworth:cutoff=9kHz"], "(0, 8000) Hz, got 9000"),
        (["talk.wav", "out.xyz", "-e", "gain:1"], "path must end in one of"),
        (["talk.wav", "talk.wav", "-e", "gain:1"], "exists already"),
        (["talk.wav", "talk.wav", "out.wav", "-e", "gain:1"], "OUT must be a folder for 2 inputs"),
        (["talk.wav", "talk.wav", "out/", "-e", "gain:1"], "the inputs' names must differ, got 2 named talk.wav"),
        (["talk.wav", "out.wav"], "process needs --effect, --rate or both"),
        (["talk.wav", "out.wav", "--rate", "fast"], "rate must be a number"),
        (["talk.wav", "out.wav", "--rate", "1"], "rate must lie in [62.5, 4096000] Hz for a signal of 16000 Hz"),
    ],
)
def test_misuse_is_status_2(folder, torchfx, talk, arguments, message):
    status, out, err = torchfx(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert [path.name for path in folder.iterdir()] == ["talk.wav"]


def test_a_rate_is_the_output_s(torchfx, talk):
    assert torchfx("talk.wav", "out.wav", "-e", "lobutterworth:1kHz", "--rate", "44.1kHz")[0] == 0
    with audio_io.Reader("out.wav") as reader:
        assert (reader.fs, reader.frames) == (44_100, 44_100)


# --- signals ----------------------------------------------------------------------------------------------------------

signals = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has other signals")


class Signalled(fx.Processor):
    """Sends its own process a signal in the second block, when the output is under way."""

    number = 0
    under_way = None

    def step(self, x, state, rate):
        Signalled.under_way = list(Path().glob(".torchfx-*"))
        signal.raise_signal(Signalled.number)
        return x, state


@signals
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_work_and_leaves_no_temporary_file(folder, talk, monkeypatch, name):
    monkeypatch.setattr(Signalled, "number", getattr(signal, name))
    monkeypatch.setattr(process.spec, "build", lambda text: Signalled())
    before = signal.getsignal(Signalled.number)
    with pytest.raises(KeyboardInterrupt if name == "SIGINT" else SystemExit) as caught:
        process.run(["talk.wav", "out.wav"], ["signalled"], force=False, allow_nan=False)
    if name != "SIGINT":
        assert caught.value.code == 128 + Signalled.number
    assert len(Signalled.under_way) == 1
    assert [path.name for path in folder.iterdir()] == ["talk.wav"]
    assert signal.getsignal(Signalled.number) == before


@signals
def test_a_signal_that_is_ignored_ends_nothing(folder, talk, monkeypatch):
    """As under nohup."""
    monkeypatch.setattr(Signalled, "number", signal.SIGHUP)
    monkeypatch.setattr(process.spec, "build", lambda text: Signalled())
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert process.run(["talk.wav", "out.wav"], ["signalled"], force=False, allow_nan=False) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert audio_io.info("out.wav").frames == FS


SLOW = """
import signal
import torchfx as fx
__all__ = ["Slow"]
class Slow(fx.Processor):
    '''Says that it runs, and then waits for what never comes.'''
    def step(self, x, state, rate):
        print("running", flush=True)
        signal.pause()
        return x, state
"""


@signals
def test_a_process_that_is_terminated_leaves_no_temporary_file(folder, talk):
    """An effect of another package says that the file is under way, and waits for a signal."""
    (folder / "slow.py").write_text(SLOW)
    (folder / "slow-1.0.dist-info").mkdir()
    (folder / "slow-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
    (folder / "slow-1.0.dist-info" / "entry_points.txt").write_text("[torchfx.processors]\nslow = slow\n")
    before = (folder / "talk.wav").read_bytes()
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    child = subprocess.Popen(
        [sys.executable, "-m", "torchfx", "process", "talk.wav", "talk.wav", "--force", "-e", "slow"],
        env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with child:
        assert child.stdout.readline() == b"running\n"
        assert len(list(folder.glob(".torchfx-*"))) == 1
        child.terminate()
        assert child.wait(timeout=60) == 128 + signal.SIGTERM
    assert list(folder.glob(".torchfx-*")) == []
    assert (folder / "talk.wav").read_bytes() == before
