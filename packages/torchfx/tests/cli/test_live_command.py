"""`torchfx live`, `play` and `record`: what they say, and what keys do."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

import torchfx as fx
from torchfx import audio_io
from torchfx.cli import live as command
from torchfx.cli.app import app
from torchfx.realtime import FileClock, RealtimeProcessor, SoundDevice


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.wav"
    audio_io.save(path, 0.5 * torch.ones(2, 4800), 48_000)
    return path


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def test_a_file_is_played_against_a_clock(file):
    found = run("play", str(file), "-e", "gain:-6dB", "--clock", "--block", "480")
    assert found.exit_code == 0, found.output
    assert "10 blocks of 10000 us" in found.stderr
    assert "0 late results, 0 overloads, 0 mutes" in found.stderr


def test_all_three_run_without_a_sound_device(file, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sounddevice", None)
    words = ("-e", "gain:-6dB", "--clock", "--block", "480")
    half = 0.5 * 10 ** (-6 / 20)
    for name, command_line in {
        "live": ("live", "--input", str(file), "--output", str(tmp_path / "live.wav")),
        "play": ("play", str(file), "--output", str(tmp_path / "play.wav")),
        "record": ("record", str(tmp_path / "record.wav"), "--input", str(file)),
    }.items():
        found = run(*command_line, *words)
        assert found.exit_code == 0, found.output
        y, rate = audio_io.load(tmp_path / f"{name}.wav")
        assert (rate, tuple(y.shape)) == (48_000, (2, 4800))
        assert float((y - half).abs().max()) < 1e-6
    again = run("play", str(file), "--output", str(tmp_path / "play.wav"), *words)
    assert again.exit_code == 2
    assert "exists: with --clock, --output is a new file" in " ".join(again.stderr.split())


@pytest.mark.parametrize("rate", [8000, 44_100])
def test_a_file_as_input_sets_the_rate(tmp_path, rate):
    source, target = tmp_path / "in.wav", tmp_path / "out.wav"
    audio_io.save(source, torch.zeros(2, rate // 10), rate)
    words = ("-e", "gain:-6dB", "--clock", "--input", str(source), "--output", str(target))
    found = run("live", *words)
    assert found.exit_code == 0, found.output
    assert audio_io.info(target).fs == rate
    assert run("live", *words[:-1], str(tmp_path / "other.wav"), "--rate", "48kHz").exit_code == 2


def test_without_a_sound_device_the_error_names_the_clock(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sounddevice", None)
    found = run("live", "-e", "gain:-6dB")
    assert found.exit_code == 3
    assert "--clock --input FILE --output FILE" in " ".join(found.stderr.split())


def test_without_an_input_silence_comes_in(tmp_path):
    target = tmp_path / "out.wav"
    found = run("record", str(target), "--clock", "--seconds", "0.1", "--channels", "1", "--block", "480")
    assert found.exit_code == 0, found.output
    y = audio_io.load(target)[0]
    assert len(y) == 1
    assert y.shape[1] > 0
    assert float(y.abs().max()) == 0
    assert run("live", "-e", "gain:-6dB", "--clock", "--seconds", "0.05").exit_code == 0


def test_the_ceiling_is_an_option(file):
    found = run("play", str(file), "-e", "gain:40dB", "--clock", "--block", "480")
    assert "1 mutes" in found.stderr
    assert "the output is muted: the chain gives samples that are not finite or above 12 dBFS" in " ".join(
        found.stderr.split()
    )
    assert "0 mutes" in run("play", str(file), "-e", "gain:40dB", "--clock", "--ceiling", "off").stderr
    assert "0 mutes" in run("play", str(file), "-e", "gain:40dB", "--clock", "--ceiling", "60").stderr


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        (("live", "-e", "gain:-6dB"), "pip install sounddevice", 3),
        (("live", "-e", "reverse"), "whole signal", 2),
        (("live", "-e", "gain:-6dB", "--block", "0"), "block_size must be a whole number >= 1, got 0", 2),
        (("live", "-e", "gain:-6dB", "--midi", "cutoff"), "--midi takes CONTROLLER=PARAMETER", 2),
        (("live", "-e", "gain:-6dB", "--midi", "7=cutoff"), "no parameter is called 'cutoff'", 2),
        (
            ("live", "-e", "gain:-6dB", "--ceiling", "loud"),
            "--ceiling takes a level such as 12 or 12dB, or off, got 'loud'",
            2,
        ),
        (
            ("live", "-e", "gain:-6dB", "--ceiling", "200"),
            "ceiling_db must lie in [-60, 120] dB or be None, got 200",
            2,
        ),
        (("play", "none.wav"), "none.wav", 3),
        (("record", "{file}"), "exists; --force overwrites it", 2),
    ],
)
def test_trouble_is_named(words, message, status, file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sounddevice", None)
    found = run(*(word.replace("{file}", str(file)) for word in words))
    assert found.exit_code == status
    assert message in " ".join(found.stderr.split())


def test_keys_change_parameters():
    chain = fx.filter.LoButterworth(1000) | fx.effect.Reverb()
    processor = RealtimeProcessor(chain, FileClock(torch.zeros(2, 64)))
    panel = command.Panel(processor)
    assert panel.names[:2] == ["0.cutoff", "1.room_size"]
    with processor:
        processor.wait()
        assert panel.press("right")
        assert chain[0].cutoff == pytest.approx(1000 * (21_600 / 20) ** 0.02, rel=1e-3)
        panel.press("down")
        panel.press("left")
        assert chain[1].room_size == pytest.approx(0.48)
        panel.press(" ")
        line = panel.line(processor.stats())
        assert not panel.press("q")
    assert line.startswith("in [....................] -60.0 dB out")
    assert line.endswith("xruns 0  misses 0  BYPASS  1.room_size = 0.48")


def test_devices_are_numbers_or_names():
    request = command.Request(48_000, 64, 2, "3", "USB")
    config = request.config(48_000, 2)
    assert (config.input_device, config.output_device) == (3, "USB")
    assert SoundDevice().latency_s == 0
