"""Gain."""

import pytest
import torch

import torchfx as fx
from torchfx.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize(
    ("gain", "factor"),
    [
        (fx.effect.Gain(0.5), 0.5),
        (fx.effect.Gain(-2), -2.0),
        (fx.effect.Gain(20, "db"), 10.0),
        (fx.effect.Gain("-20dB"), 0.1),
        (fx.effect.Gain("+6.020599913279624 db"), 2.0),
        (fx.effect.Gain("3"), 3.0),
        (fx.effect.Gain(4, gain_type="power"), 2.0),
        (fx.effect.Gain(0), 0.0),
    ],
)
def test_scales_by_the_factor(gain, factor):
    assert gain.factor == pytest.approx(factor, rel=1e-15)
    x = torch.linspace(-1, 1, 11, dtype=torch.float64)
    assert torch.allclose(gain(x), x * factor, rtol=1e-15)


def test_clamps_to_full_scale():
    assert fx.effect.Gain(10, clamp=True)(torch.tensor([-1.0, 0.05, 1.0])).tolist() == [-1.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((float("nan"),), ArgumentError, "gain must be finite, got nan"),
        (("1.2.3",), ArgumentError, "gain must be a number or a text such as '-3dB', got '1.2.3'"),
        (("loud",), ArgumentError, "gain must be a number or a text such as '-3dB', got 'loud'"),
        ((None,), ArgumentTypeError, "gain must be a number, got None"),
        ((-1, "power"), ArgumentError, "gain must be >= 0 when it is a power, got -1"),
        ((1, "volts"), ArgumentError, "gain_type must be one of amplitude, db, power, got 'volts'"),
        ((10_000, "db"), ArgumentError, "gain must stay below 6160 dB, got 10000 dB"),
    ],
)
def test_bad_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        fx.effect.Gain(*arguments)
