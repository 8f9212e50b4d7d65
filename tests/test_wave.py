"""Wave: samples with their rate."""

import numpy as np
import pytest
import torch

import torchfx as fx
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError


@pytest.mark.parametrize(
    ("ys", "dtype", "shape"),
    [
        (torch.zeros(3, 10), torch.float32, (3, 10)),
        (torch.zeros(10, dtype=torch.float64), torch.float64, (1, 10)),
        (np.zeros((2, 5), np.float32), torch.float32, (2, 5)),
        (np.zeros((5, 2), order="F").T[:, ::-1], torch.float64, (2, 5)),
        (np.zeros(4, ">f4"), torch.float32, (1, 4)),
        ([[0.0, 1.0]], torch.float64, (1, 2)),
        ([0, 1], torch.float32, (1, 2)),
    ],
)
def test_samples_come_in_many_forms(ys, dtype, shape):
    wave = fx.Wave(ys, 44100)
    assert wave.ys.dtype == dtype
    assert wave.ys.shape == shape


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("i2", -32768, 32767), ("i4", -(2**31), 2**31 - 1), ("u1", 0, 255), ("i1", -128, 127)]
)
def test_integers_are_scaled_to_full_scale(dtype, low, high):
    ys = fx.Wave(np.array([low, high], dtype), 44100).ys
    assert ys.dtype == torch.float32
    assert float(ys[0, 0]) == -1.0
    assert 0.99 <= float(ys[0, 1]) <= 1.0


@pytest.mark.parametrize(
    ("ys", "fs", "error", "message"),
    [
        (torch.zeros(2, 0), 44100, ArgumentError, r"hold samples, got \(2, 0\)"),
        (torch.zeros(1, 2, 3), 44100, ArgumentError, r"got \(1, 2, 3\)"),
        (torch.zeros(2, 5).half(), 44100, ArgumentTypeError, "got torch.float16"),
        (np.zeros(5, np.float16), 44100, ArgumentTypeError, "got float16"),
        (np.zeros(5, complex), 44100, ArgumentTypeError, "got complex128"),
        (["a"], 44100, ArgumentTypeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], 44100, ArgumentError, r"ys must have the shape \(channels, time\)"),
        (torch.ones(5, dtype=torch.bool), 44100, ArgumentTypeError, "got torch.bool"),
        (torch.zeros(5), 0, SampleRateError, r"\(0, inf\) Hz, got 0"),
        (torch.zeros(5), float("nan"), SampleRateError, "got nan"),
        (torch.zeros(5), "44100", ArgumentTypeError, "got '44100'"),
    ],
)
def test_bad_arguments_raise(ys, fs, error, message):
    with pytest.raises(error, match=message):
        fx.Wave(ys, fs)


def test_facts():
    wave = fx.Wave(torch.zeros(2, 22050), 44100, metadata={"title": "silence"})
    assert len(wave) == 22050
    assert wave.channels() == 2
    assert wave.duration() == wave.duration("sec") == 0.5
    assert wave.duration("ms") == 500
    assert wave.device == torch.device("cpu")
    assert repr(wave) == "Wave(2 channels, 0.500 s, 44100 Hz, torch.float32, cpu)"
    assert (wave | fx.effect.Gain(1.0)).metadata == {"title": "silence"}
    with pytest.raises(ArgumentError, match="unit must be"):
        wave.duration("min")


def test_pipe_runs_now_and_returns_a_new_wave(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    before, ran = wave.ys.clone(), []

    class Spy(torch.nn.Module):
        def forward(self, x):
            ran.append(x.shape)
            return x * 2

    result = wave | Spy()
    assert ran == [(2, 100)]
    assert torch.equal(wave.ys, before)
    assert torch.equal(result.ys, before * 2)
    assert result.fs == wave.fs


def test_pipe_into_what_is_no_module_raises():
    wave = fx.Wave(torch.zeros(5), 44100)
    with pytest.raises(TypeError):
        wave | 3

    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ArgumentTypeError, match="Pair must return a tensor"):
        wave | Pair()


def test_the_rate_ends_with_the_pipe():
    wave, module = fx.Wave(torch.zeros(5), 44100), fx.filter.LoButterworth(1000)
    _ = wave | module
    with pytest.raises(SampleRateError):
        module(wave.ys)

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        wave | Fails()
    with pytest.raises(SampleRateError):
        module(wave.ys)


def test_to_moves_in_place():
    wave = fx.Wave(torch.zeros(5), 44100)
    assert wave.to("meta") is wave
    assert wave.device == torch.device("meta")


def test_slices_and_channels_share_the_samples(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal(wave[10:20].ys, wave.ys[:, 10:20])
    assert torch.equal(wave.get_channel(1).ys, wave.ys[1:])
    assert wave[10:].ys.data_ptr() == wave.ys[:, 10:].data_ptr()
    with pytest.raises(ArgumentError, match=r"i must lie in \[0, 2\), got 2"):
        wave.get_channel(2)
    with pytest.raises(ArgumentTypeError, match="sliced by samples"):
        wave[3]
    with pytest.raises(ArgumentTypeError, match=r"i must be a whole number >= -2, got 0.5"):
        wave.get_channel(0.5)
    with pytest.raises(ArgumentError, match="the slice's step must be a whole number >= 1, got -1"):
        wave[::-1]


def test_transform_knows_the_rate(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert torch.equal(wave.transform(torch.mul, 3).ys, wave.ys * 3)
    lowpass = fx.filter.LoButterworth(1000)
    assert torch.equal(wave.transform(lambda ys: lowpass(ys)).ys, (wave | lowpass).ys)


def test_merge_adds_or_keeps_apart():
    a, b = fx.Wave(torch.ones(2, 3), 44100), fx.Wave(torch.full((2, 5), 2.0), 44100)
    assert fx.Wave.merge([a, b]).ys.tolist() == [[3, 3, 3, 2, 2]] * 2
    apart = fx.Wave.merge([a, b], split_channels=True)
    assert apart.ys.tolist() == [[1, 1, 1, 0, 0]] * 2 + [[2] * 5] * 2
    assert a.ys.shape == (2, 3)
    with pytest.raises(SampleRateError, match="got 44100, 48000 Hz"):
        fx.Wave.merge([a, fx.Wave(torch.ones(2, 3), 48000)])
    with pytest.raises(ArgumentError, match="same number of channels to be added up, got 2, 1"):
        fx.Wave.merge([a, fx.Wave(torch.ones(3), 44100)])
    with pytest.raises(ArgumentError, match="at least one wave"):
        fx.Wave.merge([])


def test_numpy_reads_a_wave(rng):
    wave = fx.Wave(rng.standard_normal((2, 100)), 44100)
    assert np.array_equal(np.asarray(wave), wave.ys.numpy())
    assert np.asarray(wave, dtype=np.float32).dtype == np.float32


def test_notebooks_get_a_player():
    html = fx.Wave(torch.zeros(1, 100), 44100)._repr_html_()
    assert "<audio controls" in html
    assert "data:audio/wav;base64," in html
