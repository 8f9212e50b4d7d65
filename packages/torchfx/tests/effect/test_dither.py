"""Dither."""

import pytest
import torch

import torchfx as fx
from torchfx.effect import Dither
from torchfx.effect.dither import SHAPINGS
from torchfx.errors import ArgumentError


def error(module, level, channels=1):
    x = torch.full((channels, 200_000), level / 2**15, dtype=torch.float64)
    return (module(x) - x) * 2**15


@pytest.mark.parametrize(("shape", "power"), [("TPDF", 1 / 4), ("highpass", 1 / 4)])
def test_mean_and_power_of_the_error_do_not_depend_on_the_level(shape, power):
    """Two uniform noises of a step's width and the rounding have the power 1/12 each."""
    for level in (0.0, 0.3, 0.5, 100.75):
        found = error(Dither(16, shape), level)
        assert abs(float(found.mean())) < 0.005
        assert float(found.square().mean()) == pytest.approx(power, rel=0.02)


def test_rectangular_dither_keeps_the_mean():
    for level in (0.0, 0.3, 0.5):
        found = error(Dither(16, "RPDF"), level)
        assert abs(float(found.mean())) < 0.005
        assert float(found.square().mean()) == pytest.approx(level * (1 - level), abs=0.005)


def test_highpass_noise_lies_at_high_frequencies():
    spectrum = torch.fft.rfft(error(Dither(16, "highpass"), 0.3)[0]).abs().square()
    quarter = len(spectrum) // 4
    assert float(spectrum[:quarter].sum()) < 0.5 * float(spectrum[-quarter:].sum())


def test_the_result_lies_on_steps_and_seeds_and_channels_differ(generator):
    x = torch.randn(2, 1000, generator=generator)
    y = Dither(8)(x)
    assert torch.equal(y * 128, (y * 128).round())
    assert float((y - x).abs().max()) <= 1.5 / 128 + 1e-6
    assert not torch.equal(Dither(8, seed=1)(x), y)
    noise = error(Dither(16), 0.0, channels=2)
    assert abs(float((noise[0] * noise[1]).mean())) < 0.01
    assert torch.equal(Dither(8)(x), y)


@pytest.mark.parametrize("name", ["lipshitz", "wannamaker"])
def test_shaped_errors_follow_the_filter_and_are_heard_less(name):
    """A filter that moves noise and takes none away has a mean logarithm of 0 (Gerzon and Craven)."""
    taps = torch.tensor([1.0, *(-tap for tap in SHAPINGS[name])], dtype=torch.float64)
    response = torch.fft.rfft(taps, 4096).abs()
    assert abs(float(20 * response[:-1].log10().mean())) < 0.01
    plain, shaped = (error(Dither(16, noise_shaping=each), 0.3)[0] for each in ("none", name))
    assert abs(float(shaped.mean())) < 0.005
    window = torch.hann_window(4096, dtype=torch.float64)
    spectra = [torch.fft.rfft(each.unfold(0, 4096, 2048) * window).abs().square().mean(0) for each in (plain, shaped)]
    found, expected = (
        each[1:].unfold(0, 64, 64).mean(-1).log10() * 10 for each in (spectra[1] / spectra[0], response.square())
    )
    assert torch.allclose(found, expected, rtol=0, atol=0.5)  # dB
    low = fx.filter.LoButterworth(6000, order=8, fs=44_100)
    assert float(10 * torch.log10(low(shaped).square().mean() / low(plain).square().mean())) < -10


def test_what_is_left_of_the_errors_without_the_filter_is_white_and_small(generator):
    x = torch.randn(2, 10_000, dtype=torch.float64, generator=generator)
    taps = torch.tensor([[1.0, *(-tap for tap in SHAPINGS["lipshitz"])]], dtype=torch.float64)
    shaped = (Dither(12, noise_shaping="lipshitz")(x) - x) * 2**11
    white = fx.functional.lfilter([1.0], taps[0], shaped)
    assert float(white.abs().max()) <= 1.5 + 1e-6
    assert float(white.square().mean()) == pytest.approx(1 / 4, rel=0.05)


def test_blocks_get_the_noise_of_the_whole(generator):
    x, module = torch.randn(2, 500, generator=generator), Dither(6, "highpass", seed=3, noise_shaping="wannamaker")
    stream = fx.realtime.Stream(module, 48_000, 2)
    assert torch.equal(torch.cat([stream.process(block) for block in x.split(77, dim=-1)], dim=-1), module(x))


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match="shape must be one of TPDF, RPDF, highpass, got 'gauss'"):
        Dither(16, "gauss")
    with pytest.raises(ArgumentError, match="seed must be a whole number >= 0, got -1"):
        Dither(seed=-1)
    with pytest.raises(ArgumentError, match="noise_shaping must be one of none, lipshitz, wannamaker, got 'loud'"):
        Dither(noise_shaping="loud")
