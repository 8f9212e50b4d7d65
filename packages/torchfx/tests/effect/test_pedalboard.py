"""pedalboard's effects and these: equal where definitions agree, else as docs/from-pedalboard.md says."""

import math

import pytest
import torch

import torchfx as fx
from torchfx import filter as ours
from torchfx._ops import ballistics_forward
from torchfx.effect import (
    BitCrush,
    Chorus,
    Compressor,
    Delay,
    Distortion,
    Gain,
    HardClip,
    Invert,
    Limiter,
    NoiseGate,
    Phaser,
)
from torchfx.effect import Reverb as Freeverb

pedalboard = pytest.importorskip("pedalboard")

FS = 48_000
ROUNDING = 3e-7  # of its floats, a few times


def noise(generator, seconds=2):
    """Return noise behind a short silence, in which its parameters move to their values."""
    x = 0.3 * torch.randn(2, seconds * FS, generator=generator)
    x[:, :2400] = 0
    return x


def deviation(found, effect, x):
    """Return the largest difference from a pedalboard effect's output, relative to its peak."""
    expected = torch.from_numpy(effect(x.numpy(), FS, reset=True).copy()).double()
    return float((found.double() - expected).abs().max() / expected.abs().max())


SAME = {
    "Gain": (Gain("-3dB"), ("Gain", -3), 0.0),
    "Invert": (Invert(), ("Invert",), 0.0),
    "Clipping": (HardClip(-12), ("Clipping", -12), 0.0),
    "Distortion": (Distortion(15), ("Distortion", 15), ROUNDING),
    "Bitcrush": (BitCrush(9), ("Bitcrush", 8), 0.0),  # which leaves the sign out
    "Delay": (Delay("12000 samples", mix=0.5), ("Delay", 0.25, 0.0, 0.5), 0.0),
    "Delay, in floats": (Delay("4800 samples", feedback=0.9), ("Delay", 0.10001, 0.9, 1.0), ROUNDING),
    "Delay, cut off": (Delay("484 samples", feedback=0.5, mix=0.3), ("Delay", 484.8 / FS, 0.5, 0.3), ROUNDING),
    "Chorus that stands still": (Chorus(1.0, 0.0, 7.0, 0.5), ("Chorus", 1.0, 0.0, 7.0, 0.0, 0.5), 0.0),
    "Phaser that stands still": (Phaser(1.0, 0.0, 1300, 6, 0.5), ("Phaser", 1.0, 0.0, 1300, 0.0, 0.5), ROUNDING),
    # Sections in floats lose precision the more, the lower they are.
    "HighpassFilter": (ours.HiButterworth(500, order=1), ("HighpassFilter", 500), 2e-6),
    "LowpassFilter": (ours.LoButterworth(500, order=1), ("LowpassFilter", 500), 2e-6),
    "PeakFilter": (ours.Peaking(1000, 0.7, 6), ("PeakFilter", 1000, 6, 0.7), 1e-5),
    "HighShelfFilter": (ours.HiShelving(1000, 0.7, 6), ("HighShelfFilter", 1000, 6, 0.7), 1e-5),
    "LowShelfFilter": (ours.LoShelving(1000, 0.7, 6), ("LowShelfFilter", 1000, 6, 0.7), 2e-5),
}


@pytest.mark.parametrize(("module", "effect", "tolerance"), SAME.values(), ids=SAME.keys())
def test_the_same_definition_gives_the_same_samples(generator, module, effect, tolerance):
    name, *arguments = effect
    x = noise(generator)
    with fx.sample_rate(FS):
        assert deviation(module(x), getattr(pedalboard, name)(*arguments), x) <= tolerance


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"room_size": 1.0, "damping": 0.0, "wet_level": 1.0, "dry_level": 0.0, "width": 0.3},
        {"room_size": 0.0, "damping": 1.0, "wet_level": 0.5, "dry_level": 1.0, "width": 0.0},
    ],
)
def test_freeverb_is_the_same(generator, setting):
    """Within what its guard against subnormal numbers rounds off, 7.5e-9 at each of its sums of floats."""
    x = noise(generator, 3)
    assert deviation(Freeverb(**setting, fs=FS)(x), pedalboard.Reverb(**setting), x) < 2e-6


def settled(effect, low, high):
    """Return the levels in dB at which alternating samples of so many dB come out after two seconds."""
    given = torch.linspace(low, high, 21, dtype=torch.float64)
    x = (10 ** (given[:, None] / 20) * torch.tensor([1.0, -1.0]).repeat(FS)).float()
    return [20 * math.log10(abs(float(effect(row[None])[0, -1]))) for row in x]


@pytest.mark.parametrize(("threshold", "ratio"), [(-20, 4), (-40, 2), (-10, 20), (-30, 1e4)])
def test_compressors_settle_on_one_static_curve(threshold, ratio):
    """Within 1e-4 dB: 2e-5 are what it rounds, the rest what the gain is still short of."""
    module = Compressor(threshold, ratio, knee_db=0, link=False, fs=FS)
    effect = pedalboard.Compressor(threshold, ratio, 5, 100)
    found = settled(module, -60, 6)
    assert found == pytest.approx(settled(lambda x: effect(x.numpy(), FS, reset=True), -60, 6), abs=1e-4)


@pytest.mark.parametrize(("threshold", "ratio"), [(-30, 2), (-40, 4)])
def test_gates_settle_on_one_static_curve(threshold, ratio):
    module = NoiseGate(threshold, ratio, hold_ms=0.0, range_db=200, link=False, fs=FS)
    effect = pedalboard.NoiseGate(threshold, ratio, 1, 100)
    found = settled(module, -70, 0)
    assert found == pytest.approx(settled(lambda x: effect(x.numpy(), FS, reset=True), -70, 0), abs=1e-4)


def smoothed(x, attack_ms, release_ms):
    """Return levels that rise and fall with these times divided by 2 pi as time constants."""
    coefficients = [-math.expm1(-2000 * math.pi / (ms * FS)) if ms else 1.0 for ms in (attack_ms, release_ms)]
    return ballistics_forward(x.double(), torch.tensor(coefficients, dtype=torch.float64), None)[0]


def over_db(level, threshold):
    return 20 * torch.log10(level.clamp(min=1e-30)) - threshold


@pytest.mark.parametrize("setting", [(-20, 4, 5, 100), (-40, 2, 0.5, 10), (-10, 20, 50, 500)])
def test_its_compressor_smooths_levels_instead_of_gains(generator, setting):
    """Within 5e-5: it adds to its level, a float, what may be 4000 times smaller."""
    threshold, ratio, *times = setting
    x = noise(generator)
    gain = (1 / ratio - 1) * over_db(smoothed(x.abs(), *times), threshold).clamp(min=0)
    assert deviation(x * 10 ** (gain / 20), pedalboard.Compressor(*setting), x) < 5e-5


@pytest.mark.parametrize("setting", [(-10, 2, 1, 100), (-6, 4, 5, 50)])
def test_its_gate_smooths_the_root_mean_square(generator, setting):
    threshold, ratio, *times = setting
    x = noise(generator)
    rms = smoothed(x.square(), 0.0, 50.0).sqrt()
    gain = (ratio - 1) * over_db(smoothed(rms, *times), threshold).clamp(max=0)
    assert deviation(x * 10 ** (gain / 20), pedalboard.NoiseGate(*setting), x) < 1e-6


@pytest.mark.parametrize("shape", [(3000,), (2, 3000)])
@pytest.mark.parametrize("mix", [1.0, 0.3])
def test_its_convolution_scales_the_response(generator, shape, mix):
    x, ir = noise(generator, 1), torch.randn(*shape, generator=generator)
    scaled = ir / (8 * ir.square().sum(-1).max().sqrt())
    found = ours.Convolution(scaled, mix=mix)(x)
    assert deviation(found, pedalboard.Convolution(ir.numpy(), mix, FS), x) < 1e-6


def test_its_brick_wall_is_the_limiters_but_for_the_way_down():
    x = torch.full((1, FS), 0.1)
    x[0, 10_000] = 1.0
    its = torch.from_numpy(pedalboard.BrickwallLimiter(-6, 100, 5)(x.numpy(), FS)) / x
    own = Limiter(-6, 100, 5, fs=FS)(x) / x
    wall = 10 ** (-6 / 20)
    assert float(own[0, 10_000]) == pytest.approx(wall) == pytest.approx(float(its[0, 10_000]))
    before = slice(10_000 - 240, 10_000)
    assert torch.allclose(its[0, before], torch.tensor(wall))
    assert own[0, before].diff().diff().abs().max() < 1e-5
    assert torch.allclose(own[0, 10_300:], its[0, 10_300:], atol=0.02)
    assert torch.equal(own[0, : before.start], torch.ones(before.start))


def test_both_gates_are_closed_where_a_signal_begins():
    x = torch.full((1, FS // 10), 1e-3)
    ours, its = NoiseGate(-40, 10, fs=FS)(x), torch.from_numpy(pedalboard.NoiseGate(-40, 10, 1, 100)(x.numpy(), FS))
    assert float(max(ours.abs().max(), its.abs().max())) < 1e-5


@pytest.mark.parametrize("threshold", [-20, -10, -6])
def test_its_limiter_lifts_what_is_quiet(threshold):
    x = torch.full((1, FS), 1e-3)
    lifted = 20 * math.log10(pedalboard.Limiter(threshold, 100)(x.numpy(), FS)[0, -1] / 1e-3)
    assert lifted == pytest.approx(3.75 - threshold, abs=0.01)


@pytest.mark.parametrize("depth", [0.25, 0.5])
def test_its_chorus_swings_by_10_ms_times_the_depth_downwards_first(depth):
    x = torch.arange(2 * FS)[None] / FS  # a ramp tells the delay
    delay_ms = 1000 * (x - torch.from_numpy(pedalboard.Chorus(1.0, depth, 20.0, 0.0, 1.0)(x.numpy(), FS)))[0, FS:]
    expected = 20 - 10 * depth * torch.sin(2 * math.pi * torch.arange(FS) / FS)
    assert torch.allclose(delay_ms, expected, rtol=0, atol=0.05)
