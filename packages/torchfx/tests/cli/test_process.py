"""`torchfx process`: what is written, said and returned. It runs in this process unless signals end it."""

import io
import os
import re
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import torchfx as fx
from command import run_apart
from torchfx import audio_io, spec
from torchfx.cli import process
from torchfx.cli.app import app
from torchfx.cli.request import Request

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

    def run(*arguments, command="process"):
        with pytest.raises(SystemExit) as caught:
            app([command, *map(str, arguments)])
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
    assert re.fullmatch(r"error: cannot read bad\.wav: [^\n]+\n2 done, 1 failed, 0 skipped in [^\n]+\n", err)
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
    assert process.run(["talk.wav", os.fsdecode(name)], Request(["gain:0.5"])) == 0
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
        (["talk.wav", "out.wav"], "process needs --effect, --preset, --rate, --loudness or --true-peak"),
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


# --- trees, plans, manifests ------------------------------------------------------------------------------------------


@pytest.fixture
def tree(folder, talk):
    for name in ("in/a.wav", "in/deep/b.wav"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        audio_io.save(name, talk, FS, bits_per_sample=16)


def test_a_folder_keeps_its_tree(folder, torchfx, tree):
    status, out, err = torchfx("in", "out", "-e", "gain:0.5", "--recursive", "--jobs", "2")
    assert status == 0
    assert out == "in/a.wav -> out/a.wav (1.00 s)\nin/deep/b.wav -> out/deep/b.wav (1.00 s)\n"
    assert re.fullmatch(r"2 done, 0 failed, 0 skipped in \d+\.\d s: \d+ files/s, \d+ x real time\n", err)
    assert files(folder / "out") == ["a.wav", "deep/b.wav"]
    assert torchfx("in", "flat", "-e", "gain:0.5")[1] == "in/a.wav -> flat/a.wav (1.00 s)\n"


def test_a_dry_run_prints_the_plan_and_writes_nothing(folder, torchfx, tree):
    before = files(folder)
    status, out, err = torchfx("in", "out", "-e", "gain:-3dB", "--rate", "8kHz", "--format", "flac", "-R", "--dry-run")
    assert (status, err) == (0, "")
    assert out == ("chain: gain:-3dB | resample:8kHz, flac\nin/a.wav -> out/a.flac\nin/deep/b.wav -> out/deep/b.flac\n")
    assert files(folder) == before
    assert torchfx("talk.wav", "in/a.wav", "-e", "gain:1", "-n")[1] == (
        "chain: gain:1\ntalk.wav -> in/a.wav; exists already, --force overwrites it\n"
    )


def test_what_is_done_is_skipped(folder, torchfx, tree):
    options = ("in", "out", "-e", "gain:0.5", "-R", "--skip-existing")
    assert torchfx(*options)[0] == 0
    audio_io.save("in/a.wav", torch.zeros(1, 100), FS)
    assert torchfx(*options, "-n")[1] == (
        "chain: gain:0.5\nin/a.wav -> out/a.wav\nin/deep/b.wav skipped, out/deep/b.wav is done\n"
    )
    status, out, err = torchfx(*options)
    assert (status, out) == (0, "in/a.wav -> out/a.wav (0.01 s)\n")
    assert err.startswith("1 done, 0 failed, 1 skipped in ")
    assert torchfx(*options) == (0, "", "0 done, 0 failed, 2 skipped\n")
    (folder / "in" / "bad.wav").write_bytes(b"no sound")
    assert [torchfx(*options)[0] for _ in range(2)] == [1, 1]  # some failed, the others are done


def test_failures_are_a_table(folder, torchfx, tree):
    (folder / "in" / "bad.wav").write_bytes(b"no audio")
    assert torchfx("in", "out", "-e", "gain:0.5", "--failures", "failed.csv")[0] == 1
    header, row = (folder / "failed.csv").read_text().splitlines()
    assert header == "source,target,error"
    assert row.startswith("in/bad.wav,out/bad.wav,cannot read in/bad.wav: ")
    status, _, err = torchfx("in", "out", "-e", "gain:0.5", "-f", "--failures", "none/failed.csv")
    assert (status, err.splitlines()[-1]) == (3, "error: cannot write none/failed.csv: No such file or directory")


# --- conversion -------------------------------------------------------------------------------------------------------


def test_a_file_is_converted_without_pytorch(folder, talk):
    tags = {"title": "A talk"}
    audio_io.save("tagged.flac", talk, FS, bits_per_sample=24, tags=tags)
    ran = run_apart("convert", "tagged.flac", "out.wav", folder=folder, environment={"PYTHONPROFILEIMPORTTIME": "1"})
    assert (ran.returncode, ran.stdout) == (0, "tagged.flac -> out.wav (1.00 s)\n")
    assert not re.search(r"\| +(torch|rich|scipy)$", ran.stderr, re.MULTILINE)
    assert audio_io.info("out.wav") == audio_io.AudioInfo(FS, 1, FS, "WAV", "PCM_24", tags)
    assert audio_io.load("out.wav")[0].equal(audio_io.load("tagged.flac")[0])


def test_format_bits_and_rate_are_chosen(torchfx, talk):
    assert torchfx("talk.wav", "out/", "--format", "flac", "--bits", 24, "-r", "8kHz", command="convert")[0] == 0
    found = audio_io.info("out/talk.flac")
    assert (found.fs, found.frames, found.encoding) == (8000, 8000, "PCM_24")
    status, _, err = torchfx("talk.wav", "out.wav", "--bits", 17, command="convert")
    assert (status, "WAV files hold" in err) == (2, True)


def test_stdin_and_stdout_are_wav_files(folder, talk):
    before = (folder / "talk.wav").read_bytes()
    ran = run_apart("convert", "-", "-", "--format", "flac", folder=folder, text=False, input=before)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert audio_io.load(io.BytesIO(ran.stdout))[0].equal(audio_io.load("talk.wav")[0])
    assert audio_io.info(io.BytesIO(ran.stdout)).format == "FLAC"


def test_raw_samples_go_through_a_pipe(folder, talk):
    raw = (np.random.default_rng(0).integers(-3000, 3000, 1000)).astype("<i2")
    options = ("--raw", "16000,1,s16", "--format", "raw")
    ran = run_apart("convert", "-", "-", *options, folder=folder, text=False, input=raw.tobytes())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert np.array_equal(np.frombuffer(ran.stdout, "<i2"), raw)


def test_a_lossy_file_keeps_its_bitrate(folder, torchfx, talk):
    audio_io.save("talk.mp3", talk.repeat(2, 4), 44_100, bitrate=256_000)
    assert torchfx("talk.mp3", "out/", "-e", "gain:0.5")[0] == 0
    assert torchfx("talk.mp3", "out/", "--format", "ogg", command="convert")[0] == 0
    assert torchfx("talk.mp3", "low/", "--bitrate", "64k", command="convert")[0] == 0
    rates = [audio_io.info(name).bitrate for name in ("out/talk.mp3", "out/talk.ogg", "low/talk.mp3")]
    assert rates == [pytest.approx(256_000, rel=0.04), pytest.approx(256_000, rel=0.2), pytest.approx(64_000, rel=0.05)]
    for option, value, message in [
        ("--bitrate", "fast", "bitrate must be bits per second"),
        ("--raw", "16000,s16", "raw must be RATE,CHANNELS,u8|s16"),
    ]:
        status, _, err = torchfx("talk.mp3", "x.mp3", option, value, command="convert")
        assert (status, message in err) == (2, True)


# --- presets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def speech(folder):
    """Something like speech: syllables of a buzz through formants, pauses, a hum and a rumble, in stereo, quiet."""
    fs, seconds = 44_100, 6
    t = torch.arange(fs * seconds) / fs
    pitch = 120 + 20 * torch.sin(2 * torch.pi * 0.7 * t)
    phase = 2 * torch.pi * torch.cumsum(pitch / fs, 0)
    buzz = sum(torch.sin(k * phase) / k for k in range(1, 30))
    syllables = (torch.sin(2 * torch.pi * 3 * t).clamp(min=0) * (torch.sin(2 * torch.pi * 0.25 * t) > -0.5)) ** 0.5
    hum = 0.01 * torch.sin(2 * torch.pi * 30 * t)
    voice = 0.05 * buzz * syllables
    fx.Wave(torch.stack([voice + hum, 0.8 * voice + hum]), fs).save("speech.wav", bits_per_sample=16)


@pytest.mark.parametrize(
    ("name", "target", "rate", "channels", "encoding", "lufs"),
    [
        ("podcast", "speech.mp3", 44_100, 2, "MPEG_LAYER_III", -16),
        ("speech-16k", "speech.wav", 16_000, 1, "PCM_16", -23),
        ("broadcast-r128", "speech.wav", 48_000, 2, "PCM_24", -23),
    ],
)
def test_presets_reach_their_loudness_and_peak(torchfx, speech, name, target, rate, channels, encoding, lufs):
    status, _, err = torchfx("speech.wav", "out/", "--preset", name)
    assert (status, err) == (0, "")
    found = audio_io.info(f"out/{target}")
    assert (found.fs, found.channels, found.encoding) == (rate, channels, encoding)
    loudness = fx.loudness.measure_file(f"out/{target}")
    assert loudness.integrated_lufs == pytest.approx(lufs, abs=0.15)
    assert loudness.true_peak_dbtp < -0.99
    wave = fx.Wave.from_file(f"out/{target}").ys
    hum = torch.fft.rfft(wave.double().mean(0))[int(30 * len(wave[0]) / rate)].abs() / len(wave[0]) * 2
    if name != "broadcast-r128":
        assert 20 * torch.log10(hum) < lufs - 24


@pytest.mark.parametrize("suffix", [suffix for suffix in audio_io.FORMATS if suffix != ".raw"])
@pytest.mark.parametrize("kept", ['format = "mp3"\nbitrate = "64k"\n', 'format = "wav"\nbits = 16\n'])
def test_the_suffix_overrides_the_format_of_a_preset(folder, torchfx, talk, suffix, kept):
    (folder / "own.toml").write_text(f'effects = ["gain:0.5"]\n{kept}')
    status, _, err = torchfx("talk.wav", f"out{suffix}", "--preset", "own.toml")
    assert (status, err) == (0, "")
    found = audio_io.info(f"out{suffix}")
    assert audio_io.FORMATS[suffix] in {found.format, found.encoding}  # Opus is in an Ogg file
    (folder / f"folder{suffix}").mkdir()
    assert torchfx("talk.wav", f"folder{suffix}", "--preset", "own.toml")[0] == 0
    (written,) = (folder / f"folder{suffix}").iterdir()
    assert written.suffix.lstrip(".") in kept


def test_presets_write_the_format_of_the_suffix(torchfx, talk):
    for name, output, form in (("podcast", "out.wav", "WAV"), ("speech-16k", "out.mp3", "MP3")):
        assert torchfx("talk.wav", output, "--preset", name)[0] == 0
        assert audio_io.info(output).format == form


def test_a_format_that_contradicts_the_suffix_is_refused(folder, torchfx, talk):
    names = {suffix: name.lower() for suffix, name in audio_io.FORMATS.items()}
    for suffix, name in product(names, set(names.values())):
        status, _, err = torchfx("talk.wav", f"out{suffix}", "--format", name, "-n", command="convert")
        assert status == (0 if names[suffix] == name else 2)
        if status:
            assert f"format must be {names[suffix]}, as the output out{suffix} is named, got {name}" in err
    assert torchfx("talk.wav", "out.bin", "--format", "flac", command="convert")[0] == 0
    assert audio_io.info(io.BytesIO((folder / "out.bin").read_bytes())).format == "FLAC"


def test_a_preset_of_one_s_own(folder, torchfx, talk):
    (folder / "own.toml").write_text('effects = ["gain:0.5"]\nrate = "8kHz"\nformat = "flac"\nbits = 16\n')
    assert torchfx("talk.wav", "out/", "--preset", "own.toml", "-e", "invert", "--bits", 24, "-n")[1] == (
        "chain: gain:0.5 | invert | resample:8kHz, flac, 24 bits\ntalk.wav -> out/talk.flac\n"
    )
    (folder / "wrong.toml").write_text("speed = 3\n")
    for name, message in [
        ("wrong.toml", "a preset's keys must be among effects, rate"),
        (
            "none",
            "a preset must be a TOML file or one of broadcast-r128, kaldi, librosa, nemo, podcast, speech-16k, "
            "torchaudio, whisper, got 'none'",
        ),
    ]:
        status, _, err = torchfx("talk.wav", "out/", "--preset", name)
        assert (status, message in err) == (2, True)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_lines_reach_a_pipe_where_the_bar_is_on_a_terminal(folder, talk):
    for name in ("in/a.wav", "in/b.wav"):
        (folder / "in").mkdir(exist_ok=True)
        audio_io.save(name, talk, FS)
    terminal, end = os.openpty()
    words = [sys.executable, "-m", "torchfx", "process", "in", "out/", "-e", "gain:-3dB"]
    ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=end, cwd=folder, check=True, timeout=60)
    os.close(end)
    os.close(terminal)
    assert [line.split()[0] for line in ran.stdout.decode().splitlines()] == ["in/a.wav", "in/b.wav"]


# --- watching ---------------------------------------------------------------------------------------------------------


def test_what_arrives_is_processed(folder, talk):
    (folder / "in").mkdir()
    words = [sys.executable, "-m", "torchfx", "watch", "in", "out", "--every", "0.05", "--format", "flac"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)
    with child:
        for name in ("a.wav", "b.wav"):
            audio_io.save(f"in/{name}", talk, FS)
            assert child.stdout.readline().startswith(f"in/{name} -> out/{name[0]}.flac".encode())
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert child.stderr.read() == b""
    assert files(folder / "out") == ["a.flac", "b.flac", "torchfx-manifest.jsonl"]


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
    monkeypatch.setattr(spec, "build", lambda text: Signalled())
    before = signal.getsignal(Signalled.number)
    with pytest.raises(KeyboardInterrupt if name == "SIGINT" else SystemExit) as caught:
        process.run(["talk.wav", "out.wav"], Request(["signalled"]))
    if name != "SIGINT":
        assert caught.value.code == 128 + Signalled.number
    assert len(Signalled.under_way) == 1
    assert [path.name for path in folder.iterdir()] == ["talk.wav"]
    assert signal.getsignal(Signalled.number) == before


@signals
def test_a_signal_that_is_ignored_ends_nothing(folder, talk, monkeypatch):
    """As under nohup."""
    monkeypatch.setattr(Signalled, "number", signal.SIGHUP)
    monkeypatch.setattr(spec, "build", lambda text: Signalled())
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert process.run(["talk.wav", "out.wav"], Request(["signalled"])) == 0
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


# --- an album ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", [[], ["hibutterworth:80"], ["reverse", "noisereduction"]])
def test_an_album_has_its_loudness_and_its_songs_keep_their_differences(torchfx, folder, effects):
    generator = torch.Generator().manual_seed(0)
    (folder / "songs").mkdir()
    for name, level in ("a.wav", 0.2), ("b.wav", 0.05), ("c.wav", 0.1):
        audio_io.save(f"songs/{name}", level * torch.randn(1, 2 * FS, generator=generator).clamp(-3, 3), FS)
    chain = [word for effect in effects for word in ("-e", effect)]
    arguments = ["songs", "out", *chain, "--loudness", "-24", "--engine", "threads"]
    assert torchfx(*arguments, "--album")[0] == 0
    songs, outputs = sorted((folder / "songs").iterdir()), sorted((folder / "out").iterdir())
    assert fx.loudness.measure_album(outputs).integrated_lufs == pytest.approx(-24, abs=0.02)
    found = [fx.loudness.measure_file(path).integrated_lufs for path in outputs]
    if effects != ["reverse", "noisereduction"]:  # which changes levels
        before = [fx.loudness.measure_file(path).integrated_lufs for path in songs]
        assert np.ptp(np.subtract(found, before)) < 0.1
    assert torchfx(*arguments, "--force")[0] == 0
    assert [fx.loudness.measure_file(path).integrated_lufs for path in outputs] == pytest.approx([-24] * 3, abs=0.02)


def test_an_album_under_a_ceiling(torchfx, folder):
    for name, level in ("a.wav", 0.1), ("b.wav", 0.4):
        audio_io.save(name, level * torch.randn(1, FS, generator=torch.Generator().manual_seed(1)).clamp(-2, 2), FS)
    assert torchfx("a.wav", "b.wav", "out", "--loudness", "-9", "--true-peak", "-1", "--album")[0] == 0
    loud = fx.loudness.measure_album(["out/a.wav", "out/b.wav"])
    assert loud.true_peak_dbtp < -0.9
    assert -12 < loud.integrated_lufs < -9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["talk.wav", "out/", "--album", "-e", "gain:0.5"], "loudness must be a number of LUFS for an album"),
        (["short.wav", "out/", "--album", "--loudness", "-14"], "0.4 s or more above -70 LUFS"),
        (["-", "out.wav", "--album", "--loudness", "-14"], "read twice"),
        (["talk.wav", "out/", "--loudness", "3"], "lufs must lie in"),
    ],
)
def test_an_album_that_cannot_be_measured_is_an_error_and_nothing_is_written(torchfx, talk, folder, arguments, said):
    audio_io.save("short.wav", torch.zeros(1, FS // 4), FS)
    status, _, error = torchfx(*arguments)
    assert status == 2
    assert said in error
    assert not list(folder.glob("out*"))
