"""A disk that fills, and inputs that end early: one line is said, nothing half written stays, and inputs are kept."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from command import run_here
from torchfx import audio_io

FS = 48_000
COMMANDS = {
    "convert": ["convert", "{0}", "{1}"],
    "process": ["process", "{0}", "{1}", "-e", "gain:0.5"],
    "trim": ["trim", "{0}", "{1}"],
    "concat": ["concat", "{0}", "{0}", "{1}"],
    "split": ["split", "{0}", "{2}", "--every", "1", "--suffix", "{3}"],
}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount a small file system")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mount refuses: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def noise(tmp_path):
    path = tmp_path / "noise.wav"
    audio_io.save(path, np.random.default_rng(0).uniform(-0.5, 0.5, (2, 5 * FS)), FS, bits_per_sample=16)
    return path


def said(words, folder):
    ran = run_here(*words, folder=folder)
    assert ran.returncode == 3
    (line,) = ran.stderr.splitlines()
    return line


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".aiff"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_said_and_nothing_half_written_stays(tmp_path, small_disk, noise, command, suffix):
    before = noise.read_bytes()
    (small_disk / "other").write_bytes(bytes(200_000))
    words = [
        word.format(noise, small_disk / f"out{suffix}", small_disk / "parts", suffix) for word in COMMANDS[command]
    ]
    line = said(words, tmp_path)
    assert line.startswith("error: cannot write ")
    assert line.endswith(("is the disk full?", "No space left on device"))
    assert [path.name for path in small_disk.iterdir() if path.name != "parts"] == ["other"]
    for part in small_disk.glob("parts/*"):  # those of a split that were written before
        assert audio_io.info(part).frames == FS
    assert noise.read_bytes() == before


def test_a_file_in_its_own_place_is_kept(small_disk):
    path = small_disk / "noise.wav"
    audio_io.save(path, np.random.default_rng(0).uniform(-0.5, 0.5, (1, FS)), FS, bits_per_sample=16)
    before = path.read_bytes()
    (small_disk / "other").write_bytes(bytes(120_000))
    said(["process", "noise.wav", "noise.wav", "-e", "gain:0.5", "--force"], small_disk)
    assert path.read_bytes() == before
    assert sorted(each.name for each in small_disk.iterdir()) == ["noise.wav", "other"]


@pytest.mark.parametrize(
    ("suffix", "reason"),
    [
        (".wav", "truncated, 480022 of 960000 bytes are missing"),
        (".flac", "(flac decoder lost sync; )?the file was cut or is damaged"),
        (".aiff", "trunc"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_that_ends_early_is_said(tmp_path, noise, command, suffix, reason):
    path = tmp_path / f"cut{suffix}"
    run_here("convert", noise, path, folder=tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    words = [word.format(path, tmp_path / "out.wav", tmp_path / "parts", ".wav") for word in COMMANDS[command]]
    line = said(words, tmp_path)
    assert re.match(rf"error: cannot read {re.escape(str(path))}: {reason}", line)
    assert not (tmp_path / "out.wav").exists()
    assert not list(tmp_path.glob(".torchfx-*"))
