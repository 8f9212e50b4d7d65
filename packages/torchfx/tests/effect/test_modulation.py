"""Tremolo and ring modulation."""

import math
from fractions import Fraction

import pytest
import torch

import torchfx as fx
from torchfx.effect import RingModulation, Tremolo
from torchfx.errors import ArgumentError

FS = 48_000


def angle(hertz, count):
    return 2 * math.pi * hertz / FS * torch.arange(count, dtype=torch.float64)


def test_tremolo_swings_the_level(generator):
    x = torch.randn(2, 20_000, generator=generator)
    expected = x.double() * (1 - 0.8 * (1 - torch.cos(angle(7.0, 20_000))) / 2)
    assert float((Tremolo(7.0, 0.8, fs=FS)(x) - expected).abs().max() / expected.abs().max()) < 2e-7


def test_ring_modulation_makes_two_tones_of_one():
    tone = torch.cos(angle(1000, 4800))
    expected = (torch.sin(angle(1440, 4800)) - torch.sin(angle(560, 4800))) / 2
    assert torch.allclose(RingModulation(440.0, fs=FS)(tone), expected, atol=1e-12)


def test_the_phase_goes_on_when_the_rate_changes():
    module, x = RingModulation(1000.0, fs=FS), torch.ones(1, 100, dtype=torch.float64)
    _, state = module.step(x, module.init_state((1,), FS, x.dtype), FS)
    module.carrier = 2000.0
    y, _ = module.step(x, state, FS)
    assert torch.allclose(y[0], torch.sin(angle(1000, 101)[-1] + angle(2000, 100)), atol=1e-12)


def test_an_hour_of_blocks_stays_in_phase():
    module, x = RingModulation(440.0, fs=FS), torch.ones(1, 480_000, dtype=torch.float64)
    state = module.init_state((1,), FS, x.dtype)
    first, state = module.step(x, state, FS)
    for _ in range(20):
        last, state = module.step(x, state, FS)
    assert torch.allclose(first, last, atol=1e-9)


def test_a_minute_of_a_high_carrier_is_exact():
    carrier, count = 17_469.88987227393, 60 * FS
    turns = [float(Fraction(carrier / FS) * n % 1) for n in range(count - 100, count)]
    y = RingModulation(carrier, fs=FS)(torch.ones(count, dtype=torch.float64))
    assert torch.allclose(
        y[-100:], torch.sin(2 * math.pi * torch.tensor(turns, dtype=torch.float64)), rtol=0, atol=1e-14
    )


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"depth must lie in \[0, 1\], got 1.5"):
        Tremolo(depth=1.5)
    with pytest.raises(ArgumentError, match=r"carrier must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 30000"):
        RingModulation(30_000, fs=FS)
    with pytest.raises(fx.errors.SampleRateError, match="Tremolo"):
        Tremolo()(torch.ones(3))
