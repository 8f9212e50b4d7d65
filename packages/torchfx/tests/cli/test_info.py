"""`torchfx info FILE` says what files hold."""

import json

import numpy as np

from command import run_here
from torchfx import audio_io


def test_a_row_for_each_file_and_an_error_for_the_others(tmp_path):
    audio_io.save(tmp_path / "a.flac", np.zeros((2, 24_000)), 48_000, tags={"title": "Rain", "artist": "Who"})
    audio_io.save(tmp_path / "b.wav", np.zeros((1, 1)), 8_000, bits_per_sample=16)
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    ran = run_here("info", "a.flac", "b.wav", "bad.wav", folder=tmp_path, environment={"COLUMNS": "120"})
    assert ran.returncode == 1
    assert "bad.wav" in ran.stderr
    first, second = ran.stdout.splitlines()[-2:]
    assert first.split(maxsplit=6) == ["a.flac", "FLAC", "PCM_24", "48000", "2", "0.50", "title: Rain, artist: Who"]
    assert second.split() == ["b.wav", "WAV", "PCM_16", "8000", "1", "0.00", "-"]
    assert run_here("info", "bad.wav", folder=tmp_path).returncode == 3
    assert run_here("info", "b.wav", "--format", "word", folder=tmp_path).returncode == 2


def test_lossy_files_have_a_bit_rate(tmp_path):
    audio_io.save(tmp_path / "a.mp3", np.zeros((1, 480_000)), 48_000, bitrate=128_000)
    audio_io.save(tmp_path / "b.wav", np.zeros((1, 1)), 8_000, bits_per_sample=16)
    ran = run_here("info", "a.mp3", "b.wav", folder=tmp_path, environment={"COLUMNS": "120"})
    first, second = (row.split() for row in ran.stdout.splitlines()[-2:])
    assert first == ["a.mp3", "MP3", "MPEG_LAYER_III", "48000", "1", "10.00", "128", "-"]
    assert second == ["b.wav", "WAV", "PCM_16", "8000", "1", "0.00", "-", "-"]


def test_a_pipe_gets_whole_names(tmp_path):
    name = f"{'take ' * 20}.wav"
    audio_io.save(tmp_path / name, np.zeros((1, 1)), 8_000)
    for command in ("info", "stats"):
        assert name in run_here(command, name, folder=tmp_path, environment={"COLUMNS": "80"}).stdout


def test_json_holds_the_numbers(tmp_path):
    audio_io.save(tmp_path / "b.wav", np.zeros((1, 7)), 8_000)
    found = json.loads(run_here("info", "b.wav", "--format", "json", folder=tmp_path).stdout)
    assert found["schema"] == 1
    assert found["files"]["b.wav"] == {
        "fs": 8000, "channels": 1, "frames": 7, "format": "WAV", "encoding": "DOUBLE", "tags": {}, "chapters": [],
        "bitrate": None,
    }  # fmt: skip


def test_loudness_is_measured_on_request(tmp_path):
    """A full-scale sine of 997 Hz in one channel measures -3.01 LUFS (ITU-R BS.1770)."""
    audio_io.save(tmp_path / "a.wav", np.sin(2 * np.pi * 997 / 48_000 * np.arange(96_000))[None], 48_000)
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    ran = run_here("info", "a.wav", "--loudness", folder=tmp_path, environment={"COLUMNS": "120"})
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1].split()[-3:] == ["-3.0", "0.0", "-"]
    ran = run_here("info", "a.wav", "bad.wav", "--loudness", "--format", "json", folder=tmp_path)
    assert ran.returncode == 1
    assert abs(json.loads(ran.stdout)["loudness"]["a.wav"]["integrated_lufs"] + 3.01) < 0.02
    assert run_here("info", "--loudness", folder=tmp_path).returncode == 2
