"""Delay without feedback."""

import pytest
import torch

import torchfx as fx
from torchfx.effect import Delay
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.spec import build


@pytest.mark.parametrize(
    ("time", "bpm", "expected"),
    [
        (0.25, 120, 12_000),
        (0, 120, 0),
        ("250ms", 120, 12_000),
        ("0.5 s", 120, 24_000),
        ("480 samples", 120, 480),
        ("1/4", 120, 24_000),
        ("1/4.", 120, 36_000),
        ("1/4d", 120, 36_000),
        ("1/4t", 120, 16_000),
        ("1/8", 90, 16_000),
        ("3/16", 60, 36_000),
    ],
)
def test_it_shifts_by_the_nearest_sample(time, bpm, expected):
    x = torch.zeros(40_000)
    x[0] = 1
    y = Delay(time, bpm, fs=48_000)(x)
    assert y.nonzero().tolist() == [[expected]]
    assert float(y[expected]) == 1


def test_chains_fuse_it_and_streams_keep_it(generator):
    chain = fx.filter.LoButterworth(1000) | Delay("5ms")
    assert chain.plan(48_000).calls() == 1
    x = torch.randn(2, 900, generator=generator)
    stream = fx.realtime.Stream(chain, 48_000, 2)
    blocks = torch.cat([stream.process(block) for block in x.split(100, dim=-1)], dim=-1)
    assert torch.allclose(blocks, (fx.Wave(x, 48_000) | chain).ys, atol=1e-6)


def test_it_is_built_from_text():
    assert repr(build("delay:1/8.,bpm=90")) == "Delay(time=1/8., bpm=90)"
    assert build("delay:250ms").time == 0.25


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1,), ArgumentError, r"time must lie in \[0, inf\) s, got -1"),
        (("soon",), ArgumentError, r"time must be seconds >= 0, or a text such as '250ms', .*, got 'soon'"),
        (("-5ms",), ArgumentError, "time must be seconds >= 0, .* got '-5ms'"),
        (("1/0",), ArgumentError, "time must be seconds >= 0, .* got '1/0'"),
        ((None,), ArgumentTypeError, "time must be a number in s, got None"),
        ((0.1, 0), ArgumentError, r"bpm must lie in \(0, 10000\], got 0"),
    ],
)
def test_misuse_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Delay(*arguments)
    with pytest.raises(
        ArgumentError, match="fade_in must be seconds >= 0, or a text such as '250ms', '1:30' or '480 samples', "
    ):
        fx.effect.Fade("1/8")
