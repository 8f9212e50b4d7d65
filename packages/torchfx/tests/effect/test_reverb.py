"""Reverberation: Freeverb against a loop on paper, decay times of the feedback delay network."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import torchfx as fx
from torchfx.effect import FDNReverb, Reverb
from torchfx.errors import ArgumentError

FS = 48_000
SETTINGS = [
    {},
    {"room_size": 1.0, "damping": 0.0, "wet_level": 1.0, "dry_level": 0.0, "width": 0.3},
    {"room_size": 0.0, "damping": 1.0, "wet_level": 0.5, "dry_level": 1.0, "width": 0.0},
]


def freeverb(x, fs, room_size=0.5, damping=0.5, wet_level=0.33, dry_level=0.4, width=1.0):
    """Run Freeverb on (channels, time), sample by sample."""
    channels, time = x.shape
    feedback, d = 0.7 + 0.28 * room_size, 0.4 * damping
    near, far = 1.5 * wet_level * (1 + width), 1.5 * wet_level * (1 - width)
    tank = np.zeros((channels, time))
    for c in range(channels):
        combs = [np.zeros(fs * (n + 23 * c) // 44_100) for n in (1116, 1188, 1277, 1356, 1422, 1491, 1557, 1617)]
        passes = [np.zeros(fs * (n + 23 * c) // 44_100) for n in (556, 441, 341, 225)]
        low = np.zeros(8)
        for t in range(time):
            total = 0.0
            for i, line in enumerate(combs):
                out = line[t % len(line)]
                total += out
                low[i] = (1 - d) * out + d * low[i]
                line[t % len(line)] = 0.015 * x[:, t].sum() + feedback * low[i]
            for line in passes:
                out = line[t % len(line)]
                line[t % len(line)] = total + 0.5 * out
                total = out - total
            tank[c, t] = total
    return 2 * dry_level * x + near * tank + (far * tank[::-1] if channels == 2 else 0)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS)
def test_freeverb_is_its_definition(generator, channels, setting):
    """At a low rate, where a few samples go around many times."""
    x = torch.randn(channels, 700, generator=generator, dtype=torch.float64)
    y = Reverb(**setting, fs=2000)(x)
    assert np.allclose(y.numpy(), freeverb(x.numpy(), 2000, **setting), rtol=0, atol=1e-12)


def test_a_frozen_tail_goes_on_and_takes_nothing_in(generator):
    x, module = torch.randn(2, 4 * FS, generator=generator), Reverb(wet_level=1.0, dry_level=0.0, fs=FS)
    stream = fx.realtime.Stream(module, FS, 2)
    heard = stream.process(x[:, : 2 * FS])
    module.freeze_mode = True
    frozen = [stream.process(x[:, 2 * FS :]), stream.process(torch.zeros(2, 20 * FS))]
    powers = [float(part.square().mean()) for part in (heard[:, FS:], frozen[0][:, FS:], frozen[1][:, 10 * FS :])]
    assert powers[1] == pytest.approx(powers[2], rel=0.2)
    assert powers[1] == pytest.approx(powers[0], rel=0.5)


@pytest.mark.parametrize("fs", [FS, pytest.param(16_000, marks=pytest.mark.many)])
@pytest.mark.parametrize(
    "times",
    [(2.5, 2.0, 1.0), *(pytest.param(each, marks=pytest.mark.many) for each in ((1.0, 1.0, 1.0), (0.8, 1.0, 2.0)))],
)
def test_it_decays_by_60_db_in_the_time_asked_for(fs, times):
    """Measured by Schroeder's integral from -5 to -35 dB, far from the crossovers."""
    low, middle, high = times
    x = torch.zeros(2, int(2 * max(times) * fs), dtype=torch.float64)
    x[:, 0] = 1
    module = FDNReverb(middle, low, high, low_crossover=500.0, high_crossover=2500.0, mix=1.0, fs=fs)
    h = module(x)
    for band, expected in (((60, 240), low), ((900, 1400), middle), ((4500, 7500), high)):
        left = fx.filter.Butterworth(band, order=4, btype="bandpass", fs=fs)(h).square().sum(0).flip(-1).cumsum(-1)
        level = 10 * torch.log10(left.flip(-1) / left[-1])
        begin, end = (int((level < below).nonzero()[0]) for below in (-5, -35))
        assert 2 * (end - begin) / fs == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("fs", [8000, 44_100, 192_000])
@pytest.mark.parametrize("size", [0.1, 1.0, 2.0])
def test_delays_have_no_common_divisor(fs, size):
    delays = FDNReverb(size=size, fs=fs).network(2, fs).delays
    assert len(set(delays)) == 16
    assert all(math.gcd(a, b) == 1 for a in delays for b in delays if a != b)
    assert min(delays) == pytest.approx(0.02 * size * fs, abs=100)


@pytest.mark.parametrize("module", [Reverb(fs=FS), FDNReverb(fs=FS)])
def test_reverbs_take_any_layout_of_channels(generator, module):
    x = torch.randn(3, 2, 2500, generator=generator)
    together = module(x)
    assert torch.equal(module(torch.zeros(2, 2500)), torch.zeros(2, 2500))
    for i in range(3):
        assert torch.allclose(together[i], module(x[i]), atol=1e-6)
    assert torch.allclose(module(x[0, 0]), module(x[0, :1])[0], atol=1e-7)


def test_17_channels_excite_a_network():
    x = torch.zeros(17, 4000)
    x[:, 0] = 1
    y = FDNReverb(size=0.1, fs=FS)(x)
    assert bool((y[:, 500:].abs().amax(-1) > 0).all())


@pytest.mark.parametrize("cls", [Reverb, FDNReverb])
@pytest.mark.parametrize("end", ["low", "high"])
def test_extreme_parameters_stay_finite_and_decay(generator, cls, end):
    """A frozen tail aside, which is not meant to."""
    given = {
        name: getattr(declared, end)
        for name, declared in cls.declarations.items()
        if math.isfinite(getattr(declared, end, math.inf))
    }
    module, x = cls(**{**given, "fs": FS}), torch.randn(2, FS, generator=generator)
    x[:, FS // 2 :] = 0
    y = module(x)
    assert bool(torch.isfinite(y).all())
    early, late = (float(part.square().sum()) for part in y[:, FS // 2 :].chunk(2, dim=-1))
    assert late <= 1.05 * early


def test_parameters_are_learned_through_the_loops(generator):
    x = torch.randn(1, 40, generator=generator, dtype=torch.float64)
    values = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.4, 0.5, 0.6)]

    def freeverb(room_size, damping, wet_level):
        return Reverb(room_size, damping, wet_level, fs=441)(x)

    def network(low_rt60, rt60, high_rt60):
        return FDNReverb(rt60, low_rt60, high_rt60, low_crossover=50, high_crossover=200, size=0.3, fs=1000)(x)

    for run in (freeverb, network):
        assert gradcheck(run, values, fast_mode=True)


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"x must have 1 or 2 channels, .* for Reverb, got 3"):
        Reverb(fs=FS)(torch.zeros(3, 9))
    with pytest.raises(ArgumentError, match=r"low_crossover must lie below high_crossover, 200 Hz, got 300"):
        FDNReverb(high_crossover=200.0)
    with pytest.raises(ArgumentError, match=r"rt60 must lie in \[0.1, 100\] s, got 0"):
        FDNReverb(0.0)
