"""Resampling: what passes, what doesn't, and blocks that make the whole."""

import math

import numpy as np
import pytest
import scipy.signal
import torch

import torchfx as fx
from torchfx import _ops
from torchfx.design.resampling import low_pass_phases, resampling_reach, resampling_taps
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError, StreamError
from torchfx.filter import Resample
from torchfx.realtime import Stream, process_file

PAIRS = [
    (44_100, 48_000),
    (48_000, 44_100),
    (48_000, 16_000),
    (16_000, 48_000),
    (44_100, 22_050),
    (8000, 44_100),
    (44_100, 16_000),
    (44_100, 8000),
]
REJECTION = {"HQ": 125, "VHQ": 175}


def sines(frequencies, rate, seconds=0.4):
    t = np.arange(round(rate * seconds)) / rate
    return torch.from_numpy(np.sin(2 * np.pi * np.asarray(frequencies)[:, None] * t))


def middle(y):
    return y[..., y.shape[-1] // 4 : -y.shape[-1] // 4]


def decibels(amplitude):
    return 20 * float(torch.log10(amplitude.abs().max() + 1e-300))


@pytest.mark.parametrize("quality", REJECTION)
@pytest.mark.parametrize(("fs", "rate"), PAIRS)
def test_the_pass_band_is_flat_and_free_of_images(fs, rate, quality):
    """A sine comes out as the sine at the other rate: ripple and images are all that could differ."""
    frequencies = np.linspace(0.01, 0.912, 12) * min(fs, rate) / 2
    y = (fx.Wave(sines(frequencies, fs), fs) | Resample(rate, quality)).ys
    expected = middle(sines(frequencies, rate))
    gains = (middle(y) * expected).sum(-1) / expected.square().sum(-1)
    assert float((20 * torch.log10(gains)).abs().max()) < 1e-5
    assert decibels(middle(y) - gains[:, None] * expected) < -REJECTION[quality]


@pytest.mark.parametrize("quality", REJECTION)
@pytest.mark.parametrize(("fs", "rate"), [pair for pair in PAIRS if pair[1] < pair[0]])
def test_aliases_are_suppressed(fs, rate, quality):
    frequencies = np.linspace(rate / 2, fs / 2 - 1, 12)
    y = (fx.Wave(sines(frequencies, fs), fs) | Resample(rate, quality)).ys
    assert decibels(middle(y)) < -REJECTION[quality]


def by_scipy(x, stage, down):
    """Return a low-pass of a change of rate by SciPy; its signal is silent at both ends for as long as it reaches."""
    taps = low_pass_phases(stage.up, stage.cutoff, stage.reach, stage.attenuation).T.reshape(-1).numpy()
    return scipy.signal.resample_poly(x, stage.up, down, axis=-1, window=taps[: 2 * stage.reach + 1] / stage.up)


def test_it_is_scipy_s_with_the_same_low_pass():
    x = torch.randn(2, 3000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    module = Resample(16_000, fs=48_000)
    (stage,) = module.ratio(48_000).stages
    assert np.abs(module(x).numpy() - by_scipy(x.numpy(), stage, 3)).max() < 1e-12


@pytest.mark.parametrize("quality", REJECTION)
@pytest.mark.parametrize(("fs", "rate"), [(44_100, 48_000), (48_000, 44_100), (8000, 44_100), (96_000, 44_100)])
def test_twice_the_rate_lies_between_rates_of_a_ratio_of_large_numbers(fs, rate, quality):
    x = torch.randn(2, 3000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    module = Resample(rate, quality, fs=fs)
    ratio = module.ratio(fs)
    silence = -(-1000 // ratio.down) * ratio.down
    first, second = ratio.stages
    between = by_scipy(np.pad(x.numpy(), ((0, 0), (silence, silence))), first, 1)
    y, skipped = module(x), silence // ratio.down * ratio.up
    assert np.abs(y.numpy() - by_scipy(between, second, second.down)[:, skipped:][:, : y.shape[-1]]).max() < 1e-12
    single = module(x.float()).double()
    expected = module(x.float().double())
    assert float((single - expected).abs().max()) < 2e-7 * float(expected.abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1,), (1, 1), (17, 1025), (2, 3, 501)])
def test_any_shape_has_ceil_of_its_length(shape, dtype):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = Resample(48_000, fs=44_100)(x)
    assert y.shape == (*shape[:-1], math.ceil(shape[-1] * 160 / 147))
    assert y.dtype == dtype
    alone = Resample(48_000, fs=44_100)(x.reshape(-1, shape[-1])[-1].double())
    assert float((y.reshape(-1, y.shape[-1])[-1].double() - alone).abs().max()) <= 2e-7 * float(alone.abs().max())


@pytest.mark.parametrize(("fs", "rate"), [(44_100, 48_000.5), (48_000, 44_111), (44_100, 16_000), (44_100, 6000)])
def test_odd_ratios_stream_like_the_whole(fs, rate):
    x = torch.randn(1, 900, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = (fx.Wave(x, fs) | Resample(rate)).ys
    stream = Stream(Resample(rate), fs, 1)
    y = torch.cat([*(stream.process(block) for block in x.split(257, -1)), stream.flush()], -1)
    assert y.shape == whole.shape
    assert float((y - whole).abs().max()) < 1e-12


@pytest.mark.parametrize("rate", [16_000, 8000, 11_000])
def test_two_low_passes_are_nearly_the_one_between_the_rates(rate):
    """The rate is halved by transforms first; in single precision, what lies between is rounded once more."""
    x = torch.randn(3, 4000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert Resample(rate).ratio(44_100).divided > 1
    low_pass = scipy.signal.cheby2(12, 140, 0.85 * rate / 2, output="sos", fs=44_100)
    passed = torch.from_numpy(scipy.signal.sosfilt(low_pass, x) * scipy.signal.windows.blackmanharris(4000))
    taps = resampling_taps(rate // 100, 441, "HQ")
    one = _ops.resample_forward(passed, taps, 441, resampling_reach(rate // 100, 441, "HQ"), -(-4000 * rate // 44_100))
    assert float((Resample(rate, fs=44_100)(passed) - one).abs().max()) < 1e-6 * float(one.abs().max())
    single = Resample(rate, fs=44_100)(x.float())
    expected = Resample(rate, fs=44_100)(x.float().double())
    assert float((single.double() - expected).abs().max()) < 2e-7 * float(expected.abs().max())


def test_what_follows_runs_at_the_new_rate_whole_in_blocks_and_on_files(tmp_path):
    """Behind a change of rate, back again, with a step that lags in between."""
    chain = (
        Resample(96_000) | torch.nn.Tanh() | fx.filter.LoButterworth(30_000)
        | fx.WithContext(torch.nn.Identity(), 2, 3) | Resample(48_000)
    )  # fmt: skip
    x = torch.rand(2, 5000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    wave = fx.Wave(x, 48_000) | chain
    assert (wave.fs, wave.ys.shape) == (48_000, (2, 5000))
    stream = Stream(chain, 48_000, 2)
    y = torch.cat([*(stream.process(block) for block in x.split(311, -1)), stream.flush()], -1)
    assert y.shape == wave.ys.shape
    assert float((y - wave.ys).abs().max()) < 1e-12
    fx.Wave(x, 48_000).save(tmp_path / "in.wav", encoding="DOUBLE")
    report = process_file(Resample(44_100) | fx.effect.Gain(0.5), tmp_path / "in.wav", tmp_path / "out.wav", block=700)
    assert (report.fs, report.frames) == (44_100, math.ceil(5000 * 147 / 160))
    expected = fx.Wave(x, 48_000).resample(44_100).ys * 0.5
    assert float((fx.Wave.from_file(tmp_path / "out.wav").ys - expected).abs().max()) < 1e-12


def test_the_low_pass_of_a_rate_that_is_right_already_is_none():
    chain = Resample(48_000) | fx.effect.Gain(0.5)
    assert chain.plan(48_000).calls() == 1
    x = torch.randn(2, 10)
    assert torch.equal((fx.Wave(x, 48_000) | chain).ys, x * 0.5)


def test_parameters_behind_it_glide_and_its_own_ask_for_a_reset():
    chain = Resample(24_000) | fx.effect.Gain(1.0)
    stream, x = Stream(chain, 48_000, 1), torch.ones(1, 4800)
    stream.process(x)
    chain[1].gain = 0.5
    y = stream.process(x)
    assert y.shape == (1, 2400)
    assert float(y[0, -1]) == pytest.approx(0.5, abs=1e-6)
    assert float(y.diff().abs().max()) < 0.01
    chain[0].rate = 16_000
    with pytest.raises(StreamError, match="rates or qualities that changed: reset"):
        stream.process(x)
    stream.reset()
    assert stream.process(x).shape[-1] + stream.flush().shape[-1] == 1600


def test_misuse():
    with pytest.raises(ArgumentError, match=r"rate must lie in \(0, inf\) Hz, got -1"):
        Resample(-1)
    with pytest.raises(ArgumentTypeError, match="rate must be a number in Hz, got None"):
        Resample(None)
    with pytest.raises(ArgumentError, match="quality must be one of HQ, VHQ, got 'best'"):
        Resample(48_000, quality="best")
    with pytest.raises(
        ArgumentError, match=r"rate must lie in \[187.5, 12288000\] Hz for a signal of 48000 Hz, got 100"
    ):
        Resample(100, fs=48_000)
    with pytest.raises(SampleRateError, match="Resample has no sample rate"):
        Resample(48_000)(torch.zeros(1, 10))
    with pytest.raises(
        ArgumentError, match="the branches of a sum must keep the sample rate, got one that ends at 16000"
    ):
        fx.Wave(torch.zeros(1, 10), 48_000) | (Resample(16_000) + fx.effect.Gain(0.5))
