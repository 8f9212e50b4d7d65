"""Transient shaper."""

import math

import pytest
import torch

from torchfx.effect import TransientShaper

FS = 48_000
SPAN = 20.0


def gain_db(y, x):
    return 20 * torch.log10(y.abs() / x.abs())


@pytest.mark.parametrize("frequency", [20, 61.7, 1000, 9973])
def test_a_steady_tone_keeps_its_level(frequency):
    x = 0.3 * torch.sin(2 * math.pi * frequency / FS * torch.arange(2 * FS).double())
    y = TransientShaper(attack_db=12.0, sustain_db=-12.0, attack_ms=50.0, sustain_ms=100.0, fs=FS)(x)
    assert torch.allclose(y[FS:], x[FS:], rtol=0.0115, atol=0)  # 0.1 dB


@pytest.mark.parametrize(("attack", "time"), [(6.0, 20.0), (-9.0, 5.0)])
def test_a_step_out_of_silence_is_raised_while_the_envelope_follows(attack, time):
    x = torch.full((FS,), 0.5).double()
    found = gain_db(TransientShaper(attack, sustain_db=3.0, attack_ms=time, fs=FS)(x), x)
    t = torch.arange(1, FS + 1).double() * 1000 / FS
    distance = (120 + 20 * math.log10(0.5)) * torch.exp(-t / time)
    assert torch.allclose(found, attack * (distance / SPAN).clamp(max=1), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("slope", "time"), [(30.0, 200.0), (60.0, 500.0)])  # dB a second, ms
def test_a_decay_is_raised_by_how_far_it_falls_within_the_time(slope, time):
    t = torch.arange(FS).double() / FS
    x = 10 ** (-slope * t / 20)
    found = gain_db(TransientShaper(0.0, sustain_db=8.0, sustain_ms=time, fs=FS)(x), x)
    followed = slope * time / 1000 * (1 - math.exp(-0.975 * 1000 / time))  # the peak is held for 25 ms
    assert float(found[-1]) == pytest.approx(8.0 * min(1.0, followed / SPAN), rel=0.01)


def test_a_burst_begins_louder_by_the_gain_and_goes_on_as_it_was():
    t = torch.arange(FS).double() / FS
    burst = torch.exp(-3 * t) * torch.sin(2 * math.pi * 200 * t)
    x = torch.cat([1e-3 * burst.flip(0), burst])
    found = gain_db(TransientShaper(9.0, fs=FS)(x), x)[FS + 1 :]
    loud = burst.abs()[1:] > 0.1
    assert torch.allclose(found[:480][loud[:480]], torch.tensor(9.0).double(), rtol=0, atol=0.1)
    assert float(found[FS // 2 :].abs().max()) < 0.01


def test_channels_share_the_gain_of_the_loudest(generator):
    x = torch.randn(2, 5000, generator=generator) * torch.tensor([[1.0], [0.01]])
    linked, apart = (TransientShaper(9.0, 6.0, link=link, fs=FS) for link in (True, False))
    gains = linked(x) / x
    assert torch.allclose(gains[0], gains[1], rtol=1e-5)
    assert torch.equal(apart(x)[1], apart(x[1]))
    assert torch.equal(linked(torch.zeros(2, 100)), torch.zeros(2, 100))
