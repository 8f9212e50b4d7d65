"""Chorus, flanger, vibrato and phaser."""

import math

import pytest
import torch

from torchfx.effect import Chorus, Flanger, Phaser, Vibrato
from torchfx.errors import ArgumentError

FS = 48_000
N = torch.arange(24_000, dtype=torch.float64)


@pytest.mark.parametrize(
    ("module", "mix"),
    [(Chorus(2.0, 2.0, 7.0, 0.4, fs=FS), 0.4), (Flanger(3.0, fs=FS), 0.5), (Vibrato(5.0, 1.0, 3.0, fs=FS), 1.0)],
)
def test_a_tone_is_read_at_the_swinging_time(module, mix):
    omega = 2 * math.pi * 440 / FS
    delay = module.centre_delay_ms + module.depth_ms * torch.sin(2 * math.pi * module.rate_hz * N / FS)
    late = N - (delay * FS / 1000).clamp(min=2)
    expected = (1 - mix) * torch.sin(omega * N) + mix * torch.sin(omega * late)
    x = torch.sin(omega * N)
    assert torch.allclose(module(x)[1000:], expected[1000:], atol=1e-5)
    assert float((module(x.float()) - module(x)).abs().max()) < 2e-7


def test_whole_delays_are_exact(generator):
    x = torch.randn(2, 500, generator=generator)
    y = Vibrato(depth_ms=0.0, centre_delay_ms=1.0, fs=FS)(x)
    assert torch.equal(y, torch.nn.functional.pad(x, (48, 0))[:, :500])


def test_a_phaser_at_rest_is_the_mix_of_allpass_filters():
    x = torch.zeros(4096, dtype=torch.float64)
    x[0] = 1
    found = torch.fft.rfft(Phaser(depth_octaves=0.0, centre_frequency=1000.0, stages=2, mix=0.5, fs=FS)(x))
    z = torch.exp(-1j * torch.linspace(0, math.pi, 2049, dtype=torch.float64))
    a = (math.tan(math.pi / 48) - 1) / (math.tan(math.pi / 48) + 1)
    allpass = ((a + z) / (1 + a * z)) ** 2
    assert torch.allclose(found, 0.5 + 0.5 * allpass, atol=1e-10)
    assert float(found.abs().min()) < 0.01  # a notch where both stages shift by -90 degrees
    assert abs(int(found.abs().argmin()) * FS / 4096 - 1000) < 12


@pytest.mark.parametrize("feedback", [-0.95, -0.3, 0.5, 0.95])
def test_feedback_of_a_delay_at_rest_is_a_comb(feedback):
    x = torch.zeros(4800, dtype=torch.float64)
    x[0] = 1
    y = Flanger(depth_ms=0.0, centre_delay_ms=1.0, mix=0.25, feedback=feedback, fs=FS)(x)
    expected = torch.zeros_like(x)
    expected[0] = 0.75
    expected[48::48] = 0.25 * feedback ** torch.arange(99, dtype=torch.float64)
    assert torch.allclose(y, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("feedback", [-0.95, -0.3, 0.5, 0.95])
def test_feedback_of_a_phaser_at_rest_is_the_allpass_in_a_loop(feedback):
    x = torch.zeros(1 << 16, dtype=torch.float64)
    x[0] = 1
    phaser = Phaser(depth_octaves=0.0, centre_frequency=1000.0, stages=4, mix=1.0, feedback=feedback, fs=FS)
    z = torch.exp(-1j * torch.linspace(0, math.pi, (1 << 15) + 1, dtype=torch.float64))
    a = (math.tan(math.pi / 48) - 1) / (math.tan(math.pi / 48) + 1)
    allpass = ((a + z) / (1 + a * z)) ** 4
    assert torch.allclose(torch.fft.rfft(phaser(x)), allpass / (1 - feedback * allpass), atol=1e-9)


@pytest.mark.parametrize("feedback", [-0.95, 0.95])
@pytest.mark.parametrize("effect", [Chorus, Flanger, Phaser])
def test_no_swing_makes_feedback_grow(effect, feedback, generator):
    x = torch.randn(FS, generator=generator).repeat(4)
    for rate in (1.0, 9.0, 99.0):  # whole numbers: each second is the one before
        wide = {"depth_octaves": 6.0} if effect is Phaser else {"depth_ms": 2.5, "centre_delay_ms": 2.5}
        y = effect(rate, mix=1.0, feedback=feedback, fs=FS, **wide)(x)
        assert float(y[2 * FS :].abs().max()) < 1.5 * float(y[: 2 * FS].abs().max())


def test_feedback_beyond_its_range_is_named():
    with pytest.raises(ArgumentError, match=r"feedback must lie in \[-0.95, 0.95\], got 1"):
        Chorus(feedback=1.0)


def test_a_corner_stays_below_half_the_rate(generator):
    x = torch.randn(2, 4800, generator=generator)
    y = Phaser(10.0, depth_octaves=6.0, centre_frequency=20_000, fs=FS)(x)
    assert bool(torch.isfinite(y).all())
    assert float(y.abs().max()) < 20


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"depth_ms must lie in \[0, centre_delay_ms\] = \[0, 3\] ms, got 4"):
        Chorus(depth_ms=4.0, centre_delay_ms=3.0)
    with pytest.raises(ArgumentError, match=r"centre_delay_ms must lie in \[0, 50\] ms, got 60"):
        Flanger(centre_delay_ms=60.0)
    with pytest.raises(ArgumentError, match="stages must be a whole number <= 24, got 25"):
        Phaser(stages=25)
