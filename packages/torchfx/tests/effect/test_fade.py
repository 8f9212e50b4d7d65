"""Fades, and a signal backwards."""

import math

import pytest
import torch

import torchfx as fx
from torchfx.effect import Fade, Reverse
from torchfx.errors import StreamError

T = torch.linspace(0, 1, 101, dtype=torch.float64)
GAINS = {
    "linear": T,
    "quarter_sine": torch.sin(T * math.pi / 2),
    "half_sine": torch.sin(T * math.pi / 2) ** 2,
    "exponential": T * 2 ** (T - 1),
    "logarithmic": 1 + torch.log10(0.1 + 0.9 * T),
}


@pytest.mark.parametrize("shape", GAINS)
def test_gains_follow_their_formula(shape):
    y = Fade("101 samples", "101 samples", shape, fs=48_000)(torch.ones(300, dtype=torch.float64))
    assert torch.allclose(y[:101], GAINS[shape], atol=1e-12)
    assert torch.equal(y[-101:], y[:101].flip(-1))
    assert torch.equal(y[101:-101], torch.ones(98, dtype=torch.float64))
    assert abs(float(y[0])) < 1e-15


def test_fades_of_equal_power_cross_without_a_dip():
    fading = Fade("101 samples", "101 samples", "quarter_sine", fs=48_000)(torch.ones(300, dtype=torch.float64))
    assert torch.allclose(fading[:101] ** 2 + fading[-101:] ** 2, torch.ones(101, dtype=torch.float64))


def test_a_fade_may_be_left_out_or_longer_than_the_signal():
    x = torch.ones(4)
    assert torch.equal(Fade(0, 0, fs=48_000)(x), x)
    assert Fade("11 samples", 0, "linear", fs=48_000)(x).tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert Fade("1 samples", 0, "linear", fs=48_000)(x).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_the_wave_says_how_long_a_second_is():
    assert torch.allclose((fx.Wave(torch.ones(1, 30), 10) | Fade(1.1, 0, "linear")).ys[0, :10], torch.arange(10) / 10)


def test_backwards_and_backwards_again(generator):
    x = torch.randn(2, 50, generator=generator)
    assert torch.equal(Reverse()(Reverse()(x)), x)
    assert torch.equal(Reverse()(x)[:, 0], x[:, -1])


@pytest.mark.parametrize("module", [Fade(), Reverse()])
def test_streams_refuse_them(module):
    with pytest.raises(StreamError, match=f"{type(module).__name__} .*needs the whole signal"):
        fx.realtime.Stream(module, 48_000, 2)
