"""`torchfx stats` measures files."""

import json

import pytest
import torch

import torchfx as fx
from torchfx.cli import stats


@pytest.fixture
def files(tmp_path):
    phase = 2 * torch.pi * 1000 / 48_000 * torch.arange(4 * 48_000)
    fx.Wave((0.1 * phase.sin()).expand(2, -1), 48_000).save(tmp_path / "tone.wav", encoding="FLOAT")
    fx.Wave(torch.zeros(1, 48_000), 48_000).save(tmp_path / "silence.wav")
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    return tmp_path


def test_it_prints_a_row_for_each_file(files, capsys):
    assert stats.run([str(files / "tone.wav"), str(files / "silence.wav")], "text") == 0
    tone, silence = capsys.readouterr().out.splitlines()[-2:]
    assert tone.split()[-6:] == ["-20.0", "0.0", "-20.0", "-20.0", "-20.0", "4.00"]
    assert silence.split()[-6:] == ["-inf", "-", "-inf", "-", "-inf", "1.00"]


def test_json_holds_the_numbers(files, capsys):
    path, bad = str(files / "tone.wav"), str(files / "bad.wav")
    assert stats.run([path, bad], "json") == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (found["schema"], list(found["files"])) == (1, [path])
    assert found["files"][path]["integrated_lufs"] == pytest.approx(-20, abs=0.01)
    assert "bad.wav" in printed.err


def test_exit_statuses(files, capsys):
    assert stats.run([str(files / "bad.wav")], "text") == 3
    assert stats.run([str(files / "tone.wav")], "word") == 2
    fx.Wave(torch.zeros(7, 48_000), 48_000).save(files / "seven.wav")
    assert stats.run([str(files / "seven.wav")], "text") == 3
    assert "seven.wav: channel_weights must be given" in capsys.readouterr().err


def test_an_album_is_one_programme(files, capsys):
    tone, silence = str(files / "tone.wav"), str(files / "silence.wav")
    fx.Wave(2 * fx.load(tone).ys, 48_000).save(files / "loud.wav", encoding="FLOAT")
    assert stats.run([tone, silence, str(files / "loud.wav")], "text", album=True) == 0
    album = capsys.readouterr().out.splitlines()[-1].split()
    assert album[0] == "album"
    assert album[-6:] == ["-16.0", "6.0", "-14.0", "-14.0", "-14.0", "9.00"]  # the gate leaves the silence out
    assert stats.run([tone, str(files / "bad.wav")], "json", album=True) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["album"] is None
    assert "the album is not measured" in printed.err
