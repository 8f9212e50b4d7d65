"""pedalboard's effects and these: equal where definitions agree, else as docs/from-pedalboard.md says."""

import math
import re
from pathlib import Path

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
LADDER_MODES = ("LPF12", "HPF12", "BPF12", "LPF24", "HPF24", "BPF24")
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


def click(at=4800):
    x = torch.zeros(1, FS)
    x[0, at] = 1
    return x


def echoes(y, count=4):
    """Return where samples above -60 dB lie behind the click, and what they are."""
    places = (y[0].abs() > 1e-3).nonzero()[:count, 0]
    return [int(place) - 4800 for place in places], [float(y[0, place]) for place in places]


@pytest.mark.parametrize("feedback", [0.5, -0.5])
def test_its_chorus_subtracts_what_comes_back_a_sample_later(feedback):
    its = torch.from_numpy(pedalboard.Chorus(1.0, 0.0, 10.0, feedback, 1.0)(click().numpy(), FS))
    own = Chorus(1.0, 0.0, 10.0, 1.0, -feedback, fs=FS)(click())
    assert echoes(its) == ([480, 961, 1442, 1923], pytest.approx([(-feedback) ** k for k in range(4)]))
    assert echoes(own) == ([480, 960, 1440, 1920], pytest.approx([(-feedback) ** k for k in range(4)]))


@pytest.mark.parametrize("feedback", [0.5, -0.5])
def test_its_phaser_subtracts_in_a_loop_of_one_sample(feedback):
    filtered = Phaser(1.0, 0.0, 1300, 6, 1.0, fs=FS)(click(0)).double()
    n = 1 << 17
    through = torch.fft.rfft(filtered, n)
    late = torch.exp(-2j * math.pi * torch.arange(n // 2 + 1) / n)
    expected = torch.fft.irfft(through / (1 + feedback * late * through), n)[..., : FS - 4800]
    its = torch.from_numpy(pedalboard.Phaser(1.0, 0.0, 1300, feedback, 1.0)(click().numpy(), FS))[..., 4800:]
    assert float((its - expected).abs().max()) < 1e-6


@pytest.mark.parametrize(("seconds", "samples"), [(0.01, 479), (480.7 / FS, 480)])
def test_its_delay_cuts_off_a_product_in_floats(seconds, samples):
    its = torch.from_numpy(pedalboard.Delay(seconds, 0.5, 1.0)(click().numpy(), FS))
    assert echoes(its) == ([samples * k for k in range(1, 5)], pytest.approx([0.5**k for k in range(4)]))
    assert pedalboard.Delay().mix == 0.5
    assert Delay().mix == 1.0


def ladder(mode, level):
    """Return its ladder's answer to a click of a level, relative to that."""
    effect = pedalboard.LadderFilter(getattr(pedalboard.LadderFilter, mode), 1000, 0.0, 1.0)
    return torch.from_numpy(effect((level * click()).numpy(), FS))[0, 4800:].double() / level


def test_its_ladder_saturates_and_resonates_and_one_mode_has_the_other_sign():
    quiet = ladder("LPF12", 1e-4)
    assert float((ladder("LPF12", 1.0) - quiet).abs().max()) > 0.05 * float(quiet.abs().max())
    own = {
        mode: ours.Ladder(1000, resonance=0.0, drive=0.0, mode=mode, fs=FS)(click())[0, 4800:] for mode in LADDER_MODES
    }
    for mode, y in own.items():
        likeness = float(torch.nn.functional.cosine_similarity(ladder(mode, 1e-4), y.double(), dim=0))
        assert -likeness > 0.95 if mode == "BPF12" else likeness > 0.95
    at_cutoff = [20 * math.log10(float(torch.fft.rfft(y)[900].abs())) for y in (own["LPF12"].double(), quiet)]
    assert at_cutoff == pytest.approx([-6.02, -1.98], abs=0.05)


def test_its_resampler_goes_there_and_back_and_its_containers_are_those_of_here(generator):
    x = noise(generator)
    assert pedalboard.Resample(8000)(x.numpy(), FS).shape == x.shape
    both = [pedalboard.Gain(-6), pedalboard.Distortion(10)]
    parts = Gain("-6dB"), Distortion(10)
    assert deviation((parts[0] | parts[1])(x), pedalboard.Chain(both), x) < ROUNDING
    assert deviation((parts[0] + parts[1])(x), pedalboard.Mix(both), x) < ROUNDING
    with pytest.raises(TypeError):
        pedalboard.IIRFilter([1.0, 0.5], [1.0, 0.2])


def test_the_page_names_every_class_of_both_and_no_other():
    """But for what is abstract, and a plug-in's, of other systems."""
    page = (Path(__file__).parents[2] / "docs" / "from-pedalboard.md").read_text()
    rows = [line.split("|")[1:3] for line in page.replace(r"\|", "or").splitlines() if line.startswith("| `")]
    theirs = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert {name for name in theirs - {"AudioUnitPlugin"} if not hasattr(pedalboard, name)} == set()
    effects = {name for name, each in vars(pedalboard).items() if name[0] != "_" and _is_effect(each)}
    assert effects - theirs == set()
    for place, name in re.findall(r"`(effect|filter)\.(\w+)`", " ".join(row[1] for row in rows)):
        assert hasattr(getattr(fx, place), name)


def _is_effect(each):
    abstract = {"Plugin", "PluginContainer"}
    return isinstance(each, type) and issubclass(each, pedalboard.Plugin) and each.__name__ not in abstract
