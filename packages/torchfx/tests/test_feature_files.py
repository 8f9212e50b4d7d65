"""Features of files and archives: what `torchfx features` writes is what Python gives."""

import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import torchfx as fx
from command import run_apart, run_here
from torchfx import distributed
from torchfx.distributed import Recipe, feature_files, process
from torchfx.errors import ArgumentError
from torchfx.spectral import MFCC, LogMel, Spectrogram
from torchfx.spectral.log_mel import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore:mel band")
LOCAL = ["threads", "processes"] if hasattr(os, "fork") else ["threads"]


@pytest.fixture
def archive(tmp_path):
    """Files of several rates, channels and lengths, one of them broken."""
    folder, random = tmp_path / "in", torch.Generator().manual_seed(0)
    for i, (fs, channels, seconds) in enumerate([(44_100, 2, 1.0), (16_000, 1, 0.5), (8000, 1, 5.0), (16_000, 1, 0.3)]):
        wave = fx.Wave(torch.rand(channels, round(fs * seconds), generator=random) - 0.5, fs)
        (folder / str(i % 2)).mkdir(parents=True, exist_ok=True)
        wave.save(folder / str(i % 2) / f"{i}.wav", bits_per_sample=16)
    broken = folder / "1" / "3.wav"
    broken.write_bytes(broken.read_bytes()[:500])
    return folder


def expected(source, preset, **options):
    wave = fx.Wave.from_file(source)
    rate = PRESETS[preset].rate
    return (wave if rate in (None, wave.fs) else wave | fx.filter.Resample(rate)) | LogMel(preset, **options)


def close(found, exact):
    assert found.shape == exact.shape
    return float((torch.as_tensor(found) - exact).abs().max()) <= 4e-6 * float(exact.abs().max())


def load(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        return np.load(path)["features"]
    if path.suffix == ".safetensors":
        return pytest.importorskip("safetensors.numpy").load_file(path)["features"]
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    signals, frames = (table.column(name).to_numpy() for name in ("signal", "frame"))
    values = np.stack(table.column("features").to_numpy())
    assert np.array_equal(np.lexsort((frames, signals)), np.arange(len(values)))
    return values.reshape(signals[-1] + 1, frames[-1] + 1, -1).swapaxes(-1, -2)


def test_every_preset_of_logmel_is_one_of_files():
    for name in PRESETS:
        recipe = Recipe(**distributed.preset(name))
        assert recipe.effects == (f"logmel:{name}",)
        assert recipe.feature_rate == PRESETS[name].rate


@pytest.mark.parametrize("form", feature_files.FEATURE_FORMATS)
def test_each_format_holds_what_python_gives(tmp_path, archive, form):
    if form in feature_files.PACKAGES:
        pytest.importorskip(feature_files.PACKAGES[form])
    report = process(archive / "0" / "0.wav", tmp_path / f"a.{form}", "logmel:whisper")
    assert (report.done, report.failures) == (1, [])
    found = load(tmp_path / f"a.{form}")
    assert found.dtype == np.float32
    assert close(found, expected(archive / "0" / "0.wav", "whisper"))


def test_what_belongs_to_features_is_kept(tmp_path, archive):
    process(archive / "0" / "0.wav", tmp_path / "a.npz", "logmel:whisper")
    kept = np.load(tmp_path / "a.npz")
    assert (str(kept["fs"]), str(kept["recipe"])) == ("16000", "resample:16000 | logmel:whisper")


@pytest.mark.parametrize("engine", LOCAL)
def test_an_archive_is_done_but_for_broken_files_and_what_is_done_is_skipped(tmp_path, archive, engine):
    out = tmp_path / "out"
    for done, skipped in ((3, 0), (0, 3)):
        report = process(archive, out, Recipe(**distributed.preset("whisper")), engine=engine, workers=2)
        assert (report.done, report.skipped) == (done, skipped)
        assert ["3.wav" in each.job.source for each in report.failures] == [True]
    made = [path.relative_to(out).as_posix() for path in out.rglob("*.*") if path.suffix != ".jsonl"]
    assert sorted(made) == ["0/0.npy", "0/2.npy", "1/1.npy"]
    for name in ("0/0", "1/1", "0/2"):
        assert close(np.load(out / f"{name}.npy"), expected(archive / f"{name}.wav", "whisper"))
    other = process(archive, out, Recipe(("logmel:kaldi",)), workers=1)
    assert other.done == 3  # other features of the same name are made again
    assert close(np.load(out / "0/0.npy"), expected(archive / "0/0.wav", "kaldi"))


KILLED = """
import os, signal, sys
from torchfx.distributed import process
def kill(report, total):
    if report.done == 2:
        os.kill(os.getpid(), signal.SIGKILL)
process(sys.argv[1], sys.argv[2], "logmel:kaldi", engine=sys.argv[3], workers=2, progress=kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows kills otherwise")
@pytest.mark.parametrize("engine", LOCAL)
def test_a_run_that_is_killed_goes_on(tmp_path, engine):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for i in range(12):
        fx.Wave(torch.rand(1, 4000 + i), 16_000).save(folder / f"{i}.wav")
    ran = subprocess.run([sys.executable, "-c", KILLED, folder, out, engine], check=False, stdout=subprocess.PIPE)
    assert ran.returncode == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.npy") if not path.name.startswith(".")}
    assert len(before) >= 2
    for path in before:
        assert np.load(path).shape == (1, 23, 23)  # whole
    report = process(folder, out, "logmel:kaldi", workers=1)
    assert report.done + report.skipped == 12
    assert report.skipped >= 2
    assert sum(path.stat().st_mtime_ns == at for path, at in before.items()) == report.skipped
    assert sorted(path.name for path in out.iterdir() if path.suffix == ".npy") == sorted(f"{i}.npy" for i in range(12))
    assert list(out.glob(".torchfx-*")) == []


def test_two_files_that_would_write_one_are_refused_and_the_others_done(tmp_path):
    wave = fx.Wave(torch.zeros(1, 4000), 16_000)
    (tmp_path / "in").mkdir()
    for name in ("a.wav", "a.flac", "b.wav"):
        wave.save(tmp_path / "in" / name)
    ran = run_here("features", "in", "out", "--preset", "kaldi", folder=tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.count("a.npy would be that of") == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.npy"]


def test_a_failure_names_its_file(tmp_path):
    (tmp_path / "in").mkdir()
    for name, time in (("short", 100), ("long", 4000)):
        fx.Wave(torch.zeros(1, time), 16_000).save(tmp_path / "in" / f"{name}.wav")
    ran = run_here("features", "in", "out", "--preset", "whisper", folder=tmp_path)
    assert ran.returncode == 1
    [said] = [line for line in ran.stderr.splitlines() if line.startswith("error")]
    assert said.startswith("error: in/short.wav: LogMel ")
    assert "at least 201 samples" in said


def test_files_too_long_for_memory_go_block_by_block(tmp_path, archive, monkeypatch):
    source = archive / "0" / "0.wav"
    monkeypatch.setattr(distributed.files, "BLOCK", 1000)
    monkeypatch.setattr(distributed.files, "WHOLE_LIMIT", 80_000)
    chain = fx.FilterChain(fx.filter.HiButterworth(80), MFCC(n_mfcc=13, n_fft=512, n_mels=40, log_mels=True))
    assert process(source, tmp_path / "a.npy", Recipe((chain,), rate=16_000)).failures == []
    exact = fx.Wave.from_file(source) | fx.filter.Resample(16_000) | chain
    assert close(np.load(tmp_path / "a.npy"), exact)
    [failed] = process(source, tmp_path / "b.npy", "logmel:whisper").failures
    assert "at most 80000 samples over all channels, got 88200" in str(failed.error)


def test_complex_features_go_into_numpy_s_files_alone(tmp_path, archive):
    source, recipe = archive / "1" / "1.wav", Recipe(("spectrogram:n_fft=64,power=none",))
    process(source, tmp_path / "a.npy", recipe)
    assert close(np.load(tmp_path / "a.npy"), fx.Wave.from_file(source) | Spectrogram(n_fft=64, power=None))
    pytest.importorskip("pyarrow")
    [failed] = process(source, tmp_path / "a.parquet", recipe).failures
    assert "format must be npy or npz for complex features, got parquet" in str(failed.error)
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effects": ("logmel:whisper",), "rate": 8000}, "rate must be 16000 Hz, which the features need, got 8000"),
        (
            {"effects": ("logmel:kaldi",), "format": "flac"},
            "format must hold features, which the effects give, and flac",
        ),
        ({"effects": ("gain:2",), "format": "npy"}, "format must hold samples, which the effects give, and npy"),
        ({"effects": ("logmel:kaldi",), "loudness": -23.0}, "loudness is of samples"),
        ({"effects": ("logmel:kaldi",), "bits": 16}, "bits is of samples"),
    ],
)
def test_what_contradicts_itself_is_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Recipe(**options)


def test_a_missing_package_is_named_before_a_file_is_read(monkeypatch):
    monkeypatch.setitem(feature_files.PACKAGES, "parquet", "a_package_that_is_missing")
    with pytest.raises(ArgumentError, match="needs the package a_package_that_is_missing: pip install"):
        Recipe(("logmel:kaldi",), format="parquet")


def test_the_command_says_shape_and_rate(tmp_path, archive):
    ran = run_here("features", "in/0/0.wav", "a.npz", "--preset", "whisper", folder=tmp_path)
    assert ran.stdout == "in/0/0.wav -> a.npz (1.00 s: 2 x 80 x 100, resampled from 44100 to 16000 Hz)\n"
    assert run_here("features", "in/0/0.wav", "a.npz", "--preset", "kaldi", folder=tmp_path).returncode == 2  # exists
    chain = ("-e", "mono", "-e", "mfcc:n_mfcc=5,n_mels=20")
    ran = run_here("features", "in/0/0.wav", "new/", *chain, "--format", "npz", folder=tmp_path)
    assert ran.stdout.startswith("in/0/0.wav -> new/0.npz (1.00 s: 1 x 5 x ")
    for arguments, message in [
        (("a.wav",), "features go into files of .npy, .npz, .safetensors, .parquet, got a.wav"),
        (("b.npy", "-e", "invert"), "effects that end in features, got logmel:kaldi | invert"),
    ]:
        ran = run_here("features", "in/1/1.wav", *arguments, "--preset", "kaldi", folder=tmp_path)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert message in ran.stderr
    ran = run_here("features", "in/1/1.wav", "b.npy", "-e", "invert", folder=tmp_path)
    assert (ran.returncode, "needs a preset or effects that end in features" in ran.stderr) == (2, True)


def test_stdout_gets_an_array(tmp_path, archive):
    ran = run_apart("features", "in/1/1.wav", "-", "--preset", "kaldi", folder=tmp_path, text=False)
    assert close(np.load(io.BytesIO(ran.stdout)), expected(archive / "1" / "1.wav", "kaldi"))


def test_samples_that_are_no_numbers_are_said(tmp_path):
    x = torch.rand(1, 8000)
    x[0, 3000] = torch.nan
    fx.Wave(x, 16_000).save(tmp_path / "a.wav", encoding="FLOAT")
    ran = run_here("features", "a.wav", "a.npy", "--preset", "kaldi", folder=tmp_path)
    assert ran.returncode == 1
    assert "1 samples are NaN or infinite, the first in frame 3000" in ran.stderr
    assert "a.npy: 46 values are NaN or infinite, the first in frame 17" in ran.stderr
