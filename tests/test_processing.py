"""Files through a module."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import torchfx as fx
from torchfx import audio_io
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.processing import plan_outputs, process_files
from torchfx.realtime import FileReport


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.wav"
    noise = torch.rand(2, 8000, generator=torch.Generator().manual_seed(0)) - 0.5
    audio_io.save(path, noise, 16000, bits_per_sample=16)
    return path


def test_outputs_are_planned(tmp_path):
    a, b = tmp_path / "a.wav", tmp_path / "b.wav"
    assert plan_outputs([a], tmp_path / "c.flac") == [(a, tmp_path / "c.flac")]
    assert plan_outputs([a], tmp_path) == [(a, tmp_path / "a.wav")]
    assert plan_outputs([a], f"{tmp_path}/new.wav/") == [(a, tmp_path / "new.wav" / "a.wav")]
    assert plan_outputs([a], "new") == [(a, Path("new/a.wav"))]
    assert plan_outputs([a, b], "takes.2024") == [(a, Path("takes.2024/a.wav")), (b, Path("takes.2024/b.wav"))]
    assert plan_outputs([a, b], Path("new")) == [(a, Path("new/a.wav")), (b, Path("new/b.wav"))]
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match=r"OUT must be a folder for 2 inputs"):
        plan_outputs([a, b], tmp_path / "file")
    with pytest.raises(ArgumentError, match=r"OUT must be a folder for 2 inputs, got the file .*new.wav"):
        plan_outputs([a, b], tmp_path / "new.wav")
    with pytest.raises(AudioFileError, match="File name too long"):
        plan_outputs([a], tmp_path / ("x" * 300 + ".wav"))
    with pytest.raises(ArgumentError, match=r"names must differ, got 2 named a.wav"):
        plan_outputs([a, tmp_path / "x" / "a.wav"], tmp_path / "new")


def test_files_are_filtered_and_keep_their_encoding(tmp_path, talk):
    module = fx.filter.LoButterworth(1000, order=4)
    [outcome] = process_files([(talk, tmp_path / "out" / "talk.wav")], module)
    assert outcome.error is None
    assert outcome.report == FileReport(8000, 16000, 2, 1, None, None)
    assert outcome.report.duration_s == 0.5
    assert audio_io.info(outcome.target).encoding == "PCM_16"
    expected = (fx.Wave.from_file(talk) | module).ys
    assert torch.allclose(audio_io.load(outcome.target)[0], expected, atol=2**-16)
    [outcome] = process_files([(talk, tmp_path / "talk.flac")], module)
    assert audio_io.info(outcome.target).format == "FLAC"


def test_many_channels_keep_their_encoding(tmp_path):
    source = tmp_path / "multi.wav"
    soundfile.write(source, np.zeros((100, 17)), 48000, format="WAVEX", subtype="PCM_24")
    [outcome] = process_files([(source, tmp_path / "out.wav")], fx.effect.Gain(0.5))
    assert (audio_io.info(outcome.target).channels, audio_io.info(outcome.target).encoding) == (17, "PCM_24")


def test_folders_are_made(tmp_path, talk):
    for target in (tmp_path / "new" / "talk.wav", tmp_path / "a" / "whole" / "tree" / "talk.wav"):
        [outcome] = process_files([(talk, target)], fx.effect.Gain(0.5))
        assert outcome.error is None
        assert audio_io.info(target).frames == 8000
    for target in (talk / "talk.wav", talk / "deeper" / "talk.wav"):
        [outcome] = process_files([(talk, target)], fx.effect.Gain(0.5))
        assert isinstance(outcome.error, AudioFileError)
        assert str(outcome.error).startswith(f"cannot write {target}: ")


def test_no_folder_is_left_after_a_failure(tmp_path, talk):
    (tmp_path / "there").mkdir()
    jobs = [
        (talk, tmp_path / "a" / "b" / "talk.wav"),
        (talk, tmp_path / "there" / "c" / "talk.wav"),
        (tmp_path / "missing.wav", tmp_path / "d" / "talk.wav"),
    ]
    outcomes = list(process_files(jobs, fx.filter.LoButterworth(9000)))
    assert [type(outcome.error) for outcome in outcomes] == [ArgumentError, ArgumentError, AudioFileError]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["talk.wav", "there"]


class Reverse(fx.Processor):
    def forward(self, x):
        return x.flip(-1)


@pytest.mark.parametrize("module", [Reverse(), fx.effect.Gain(0.5) | Reverse(), fx.effect.Gain(0.5) + Reverse()])
def test_what_needs_the_whole_signal_gets_it(tmp_path, module):
    tags = {"title": "A title"}
    audio_io.save(tmp_path / "a.flac", torch.linspace(-0.5, 0.5, 1000)[None], 16000, bits_per_sample=16, tags=tags)
    [outcome] = process_files([(tmp_path / "a.flac", tmp_path / "b.flac")], module)
    assert outcome.report == FileReport(1000, 16000, 1, 1, None, None)
    expected = (fx.Wave.from_file(tmp_path / "a.flac") | module).ys
    assert torch.allclose(audio_io.load(tmp_path / "b.flac")[0], expected, rtol=0, atol=2**-16)
    assert audio_io.info(tmp_path / "b.flac") == audio_io.AudioInfo(16000, 1, 1000, "FLAC", "PCM_16", tags)


@pytest.mark.parametrize("module", [fx.effect.Gain(0.5), Reverse()])
def test_samples_that_are_not_finite_are_counted(tmp_path, module):
    x = torch.zeros(2, 100)
    x[0, 40], x[1, 59] = float("nan"), float("inf")
    audio_io.save(tmp_path / "a.wav", x, 16000)
    [outcome] = process_files([(tmp_path / "a.wav", tmp_path / "b.wav")], module)
    assert outcome.not_finite
    assert (outcome.report.not_finite_in, outcome.report.not_finite_out) == ((2, 40), (2, 40))
    [outcome] = process_files([(tmp_path / "a.wav", tmp_path / "b.flac")], module)
    assert str(outcome.error) == (
        "ys must be finite in a PCM_24 file, got 2 NaN or infinite samples, the first in frame 40"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wav", "b.wav"]


def test_one_failure_stops_nothing(tmp_path, talk):
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"RIFF")
    jobs = [(bad, tmp_path / "1.wav"), (talk, tmp_path / "2.wav"), (talk, talk)]
    first, second, third = process_files(jobs, fx.effect.Gain(0.5))
    assert "cannot read" in str(first.error)
    assert second.error is None
    assert "exists already; --force" in str(third.error)
    assert not (tmp_path / "1.wav").exists()
    assert (tmp_path / "2.wav").exists()


def test_overwriting_on_request_may_replace_the_source(tmp_path, talk):
    before = audio_io.load(talk)[0]
    [outcome] = process_files([(talk, talk)], fx.effect.Gain(0.5), overwrite=True)
    assert outcome.error is None
    assert torch.allclose(audio_io.load(talk)[0], before / 2, atol=2**-16)


def test_clipping_is_passed_on(tmp_path, talk):
    [outcome] = process_files([(talk, tmp_path / "loud.wav")], fx.effect.Gain(10.0))
    assert "were clipped" in outcome.warnings[0]
