"""What a call costs beside the arithmetic, in Python calls: they are the same whatever else the machine does."""

import collections
import os
import sys
from pathlib import Path

import pytest
import soundfile
import torch
from scipy import signal

import torchfx as fx
from torchfx import audio_io
from torchfx._ops import native
from torchfx.distributed import Job, Recipe
from torchfx.distributed.files import process_job

pytestmark = pytest.mark.skipif(native.library is None, reason="counts the way to the native library")

FS = 48_000


def python_calls(work):
    """Return the file and name of every Python function that is called."""
    work()  # plans are made
    seen = []

    def listen(frame, event, _):
        if event == "call":
            seen.append((frame.f_code.co_filename, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


@pytest.fixture
def wave(generator):
    return fx.Wave(torch.randn(2, 64, generator=generator), FS)


def filters(depth):
    return [fx.filter.LoButterworth(1000 + i) for i in range(depth)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fx.filter.HiButterworth(80, order=4) | fx.filter.LoButterworth(12_000) | fx.effect.Gain(0.5),
        lambda: fx.FilterChain(*filters(60)),
        lambda: fx.filter.LoButterworth(1000),
    ],
)
def test_a_wave_through_a_chain_is_a_dozen_calls_in_eight_files(wave, make):
    chain = make()
    seen = python_calls(lambda: wave | chain)
    own = [call for call in seen if "lambda" not in call[1]]
    assert len(own) <= 14, own
    assert len({file for file, _ in own}) <= 8


def test_a_remembered_plan_costs_the_same_at_any_depth(wave):
    few, many = fx.FilterChain(*filters(3)), fx.FilterChain(*filters(60))
    assert len(python_calls(lambda: wave | few)) == len(python_calls(lambda: wave | many))


def test_a_stream_is_a_handful_of_calls(wave):
    chain = fx.filter.HiButterworth(80, order=4) | fx.effect.Gain(0.5, clamp=True) | fx.filter.LoButterworth(12_000)
    stream = fx.realtime.Stream(chain, FS, 2)
    stream.process(wave.ys)  # which copies processors: so much was assigned since
    assert len(python_calls(lambda: stream.process(wave.ys))) <= 4


def test_a_filter_and_features_in_a_stream_are_a_dozen_calls(generator):
    stream = fx.Stream(fx.filter.HiButterworth(80) | fx.spectral.LogMel("kaldi"), FS, 1)
    x = torch.randn(1, 1600, generator=generator)
    stream.process(x)
    stream.process(x)
    assert len(python_calls(lambda: stream.process(x))) <= 14


def test_slices_of_a_longer_signal_are_a_handful_of_calls(generator):
    stream = fx.realtime.Stream(fx.effect.Compressor(), FS, 2)
    long = torch.randn(2, 640, generator=generator)
    stream.process(long[:, :64])
    assert len(python_calls(lambda: stream.process(long[:, 64:128]))) <= 8


def test_a_late_step_adds_one_call_to_a_stream(wave):
    stream = fx.realtime.Stream(fx.effect.Compressor() | fx.effect.Limiter(), FS, 2)
    for _ in range(10):  # past what the limiter holds back
        stream.process(wave.ys)
    assert len(python_calls(lambda: stream.process(wave.ys))) <= 5


def test_a_streams_frames_of_features_are_a_handful_of_calls(generator):
    stream = fx.realtime.Stream(fx.spectral.LogMel("whisper", normalize=False), 16_000, 1)
    block = torch.randn(1, 1600, generator=generator)
    stream.process(block)
    assert len(python_calls(lambda: stream.process(block))) <= 10


def test_a_response_on_a_tensor_is_a_score_of_calls(wave):
    emphasis = fx.filter.Preemphasis()
    assert len(python_calls(lambda: emphasis(wave.ys))) <= 20


def test_noise_goes_past_the_dispatcher(wave):
    """Each of the three operators that it needs would take a dozen calls more through it."""
    noisy = fx.effect.AddNoise(20.0)
    assert len(python_calls(lambda: noisy(wave.ys))) <= 73


def test_a_filter_on_a_tensor_is_a_score_of_calls(wave):
    low = fx.filter.LoButterworth(1000, fs=FS)
    assert len(python_calls(lambda: low(wave.ys))) <= 19


@pytest.mark.parametrize("name", ["Chorus", "Compressor", "Distortion", "Limiter", "Phaser", "Reverb"])
def test_an_effect_with_memory_on_a_tensor_is_a_score_of_calls(wave, name):
    """Its native program, and the states it starts in, are those of the call before."""
    cls = getattr(fx.effect, name)
    effect = cls(fs=FS) if "fs" in cls.declarations else cls()
    assert len(python_calls(lambda: effect(wave.ys))) <= 17


def test_a_short_file_costs_few_calls_of_python_and_of_the_system(tmp_path):
    """Two seconds at 16 kHz are 0.2 ms of arithmetic. libsndfile's own calls and the folders of a path don't count."""
    audio_io.save(tmp_path / "in.wav", torch.zeros(1, 32_000), 16_000, bits_per_sample=16)
    recipe = Recipe(("biquadhpf:80", "gain:-3dB"))
    job = Job(str(tmp_path / "in.wav"), str(tmp_path / "out.wav"))
    seen, system = [], []

    def listen(frame, event, called):
        if event == "call" and "torchfx" in Path(frame.f_code.co_filename).parts:
            seen.append((frame.f_code.co_filename, frame.f_code.co_name))
        elif event == "c_call" and called.__module__ == os.stat.__module__:
            system.append(called.__name__)

    process_job(job, recipe, False)  # the chain is built, and its plan made
    Path(job.target).unlink()
    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        outcome = process_job(job, recipe, False)
    finally:
        sys.setprofile(before)
    assert outcome.error is None
    assert len(seen) <= 200, collections.Counter(seen).most_common(20)
    system = [name for name in system if name not in {"fspath", "lstat"} and not name.startswith("_")]
    assert len(system) <= 15, system


def test_no_file_waits_for_the_disk(tmp_path, monkeypatch):
    """soundfile has the disk write a file when it is closed, which takes longer than all else of a short one."""
    flushed = []
    monkeypatch.setattr(soundfile.SoundFile, "flush", lambda file: flushed.append(file.mode))
    audio_io.save(tmp_path / "a.wav", torch.zeros(1, 100), FS)
    assert "w" not in flushed


def test_scipys_functions_with_known_coefficients_are_a_few_dozen_calls(wave):
    """Transfer functions are kept by the values of their coefficients: finding one costs few calls, making one many."""
    b, a = signal.butter(4, 0.1)
    sos = torch.from_numpy(signal.butter(4, 0.1, output="sos"))
    assert len(python_calls(lambda: fx.functional.lfilter(b, a, wave.ys))) <= 18
    assert len(python_calls(lambda: fx.functional.filtfilt(b, a, wave.ys))) <= 25
    assert len(python_calls(lambda: fx.functional.sosfiltfilt(sos, wave.ys))) <= 46
