"""Compressor, expander, noise gate and limiter."""

import math

import pytest
import torch

import torchfx as fx
from torchfx import loudness
from torchfx.effect import Compressor, Expander, Limiter, NoiseGate
from torchfx.errors import ArgumentError, ArgumentTypeError

FS = 48_000
EFFECTS = (Compressor, Expander, NoiseGate, Limiter)


def levels(y):
    return 20 * torch.log10(y.abs())


@pytest.mark.parametrize(("ratio", "knee"), [(4.0, 0.0), (2.0, 12.0), (1e6, 6.0), (1.0, 6.0)])
def test_a_settled_compressor_follows_its_static_curve(ratio, knee):
    """The input's level L and the output's: L + (1 / ratio - 1) k(L - threshold)."""
    given = torch.linspace(-60, 10, 141, dtype=torch.float64)
    module = Compressor(-20.0, ratio, attack_ms=0.1, release_ms=1.0, knee_db=knee, makeup_db=3.0, link=False, fs=FS)
    found = levels(module(10 ** (given[:, None] / 20) * torch.tensor([1.0, -1.0]).double().repeat(1000)))[:, -1]
    for level, out in zip(given.tolist(), found.tolist(), strict=True):
        over = level + 20
        bent = max(over, 0.0) if abs(over) >= knee / 2 else (over + knee / 2) ** 2 / (2 * knee)
        assert out == pytest.approx(level + (1 / ratio - 1) * bent + 3, abs=0.01)


@pytest.mark.parametrize(("ratio", "reach"), [(3.0, 40.0), (2.0, 200.0)])
def test_a_settled_expander_follows_its_static_curve(ratio, reach):
    given = torch.linspace(-80, 0, 81, dtype=torch.float64)
    module = Expander(-30.0, ratio, attack_ms=0.1, release_ms=0.1, knee_db=0.0, range_db=reach, link=False, fs=FS)
    found = levels(module((10 ** (given[:, None] / 20)).expand(-1, 2000)))[:, -1]
    expected = given + ((1 - ratio) * (-30 - given).clamp(min=0)).clamp(min=-reach)
    assert torch.allclose(found, expected, rtol=0, atol=0.01)


@pytest.mark.parametrize(("attack", "release"), [(5.0, 100.0), (50.0, 10.0)])
def test_a_step_is_followed_with_the_time_constants(attack, release):
    """The gain in dB, and so the level's way to where it settles, decays as exp(-t / time constant)."""
    x = torch.cat([torch.full((FS,), 1.0), torch.full((FS,), 0.01)]).double()
    y = Compressor(-20.0, 4.0, attack, release, knee_db=0.0, fs=FS)(x)
    gain = levels(y) - levels(x)
    t = torch.arange(1, FS + 1).double() / FS
    down, up = gain[:FS] + 15, gain[FS:] - gain[-1]
    for way, time in ((down, attack), (up, release)):
        found = -1000 * t[int(time * FS / 1000)] / torch.log(way[int(time * FS / 1000)] / (15 if way is down else -15))
        assert float(found) == pytest.approx(time, rel=0.01)


def test_a_gate_stays_open_while_it_holds():
    x = torch.full((FS // 10,), 1e-3)
    x[100] = 0.5
    gate = NoiseGate(-40.0, ratio=100.0, attack_ms=0.0, release_ms=0.0, hold_ms=10.0, range_db=60.0, fs=FS)
    is_open = gate(x) > 5e-4
    assert is_open.nonzero().flatten().tolist() == list(range(100, 100 + 481))


@pytest.mark.parametrize("cls", EFFECTS)
def test_linked_channels_share_a_gain(generator, cls):
    x = 10 ** (2 * torch.rand(2, 2, 2000, generator=generator) - 2)
    linked = cls(threshold_db=-20.0, link=True, fs=FS)(x) / x
    late = 240 if cls is Limiter else 0
    assert torch.allclose(linked[:, 0, late : -late or None], linked[:, 1, late : -late or None], rtol=1e-5)
    apart = cls(threshold_db=-20.0, link=False, fs=FS)
    assert torch.equal(apart(x)[1, 1], apart(x[1, 1]))


@pytest.mark.parametrize("cls", EFFECTS)
def test_silence_stays_silent(cls):
    assert torch.equal(cls(fs=FS)(torch.zeros(2, 3000)), torch.zeros(2, 3000))


EXTREMES = {"threshold_db": (-200.0, 200.0), "ratio": (1.0, 1e12), "attack_ms": (0.0, 1e9), "release_ms": (0.0, 1e9),
            "knee_db": (0.0, 200.0), "range_db": (0.0, 200.0), "makeup_db": (-200.0, 200.0), "hold_ms": (0.0, 20.0),
            "lookahead_ms": (0.0, 20.0)}  # fmt: skip


@pytest.mark.parametrize("cls", EFFECTS)
def test_extremes_stay_finite_and_regular(generator, cls):
    x = torch.randn(2, 3000, generator=generator) * torch.cat([torch.ones(1000), torch.zeros(1000), torch.ones(1000)])
    names = [name for name in cls.declarations if name in EXTREMES]
    for bits in range(2 ** len(names)):
        module = cls(**{name: EXTREMES[name][bits >> i & 1] for i, name in enumerate(names)}, fs=FS)
        y = module(x)
        assert bool(torch.isfinite(y).all()), module
        assert not bool(((y != 0) & (y.abs() < torch.finfo(y.dtype).tiny)).any()), module


def test_the_detector_hears_the_signal_through_the_side_chain(generator):
    x = 0.5 * torch.sin(2 * math.pi * 60 / FS * torch.arange(FS)) + 0.01 * torch.randn(FS, generator=generator)
    heard = fx.filter.HiButterworth(1000, order=4, fs=FS)
    module = Compressor(-20.0, 10.0, sidechain=heard, fs=FS)
    assert torch.allclose(module(x), x)  # nothing above 1 kHz is loud
    assert float(Compressor(-20.0, 10.0, fs=FS)(x)[FS // 2 :].abs().max()) < 0.25
    keyed, _ = Compressor(-20.0, 10.0, fs=FS).keyed(x, heard(x))
    assert torch.allclose(module(x), keyed)
    stream = fx.realtime.Stream(module, FS, 1)
    blocks = torch.cat([stream.process(block) for block in x[None].split(777, dim=-1)], dim=-1)
    assert torch.allclose(blocks[0], module(x), atol=1e-6)
    assert "(sidechain): HiButterworth(cutoff=1000, order=4, fs=48000)" in repr(module)


def test_a_side_chain_is_what_it_is_in_a_chain(generator):
    x = torch.randn(2, 900, generator=generator)
    louder = Compressor(-20.0, 4.0, sidechain=fx.effect.Gain(4.0), fs=FS)
    torch.testing.assert_close(louder(x), Compressor(-20.0, 4.0, fs=FS).keyed(x, 4 * x)[0])


def test_a_key_ducks_a_signal_block_by_block(generator):
    x, key = torch.randn(2, 900, generator=generator), torch.randn(1, 900, generator=generator)
    duck = Compressor(-20.0, 4.0, fs=FS)
    whole, _ = duck.keyed(x, key)
    first, state = duck.keyed(x[:, :333], key[:, :333])
    second, _ = duck.keyed(x[:, 333:], key[:, 333:], state)
    assert torch.equal(torch.cat([first, second], -1), whole)


# --- limiter --------------------------------------------------------------------------------------------------


def nasty(generator):
    """Signals whose peaks lie between samples, come out of silence, or follow each other closely."""
    n = torch.arange(9600)
    clicks = torch.zeros(9600)
    clicks[[0, 1, 100, 5000, 5001, 9599]] = 9.0
    adversary = torch.zeros(9600)  # the signs of the low-pass's taps halfway between two samples
    adversary[4740:4860] = torch.sign(torch.sinc(torch.arange(-60, 60) + 0.5)) * 5
    yield 3 * torch.randn(2, 9600, generator=generator)
    yield 4 * torch.sign(torch.randn(2, 9600, generator=generator))
    yield 2 * torch.sin(math.pi / 2 * n + math.pi / 4)
    yield 3 * torch.sin(2 * math.pi * 11_900 / FS * n) * (n // 300 % 2)
    yield clicks
    yield adversary


@pytest.mark.parametrize("look", [0.0, 5.0])
@pytest.mark.parametrize("true_peak", [False, True])
def test_no_sample_passes_the_wall(generator, look, true_peak):
    module = Limiter(-6.0, release_ms=50.0, lookahead_ms=look, true_peak=true_peak, fs=FS)
    for x in nasty(generator):
        y = module(x)
        assert float(levels(y).max()) <= -6 + 1e-5
        if true_peak:
            assert float(loudness.true_peak(y, FS)) <= -6 + 0.1


def test_a_limiter_reports_its_latency_and_leaves_quiet_signals_alone(generator):
    x = 0.1 * torch.randn(2, 3000, generator=generator).clamp(-3, 3)
    for true_peak, late in ((False, 96), (True, 96 + 16 + 95)):
        module = Limiter(0.0, lookahead_ms=2.0, true_peak=true_peak, fs=FS)
        assert module.latency_samples(FS) == late
        assert torch.equal(module(x), x)
        stream = fx.realtime.Stream(module, FS, 2)
        assert torch.equal(torch.cat([stream.process(x), stream.flush()], -1)[:, late:], x)


def test_the_gain_falls_in_a_straight_line_before_a_peak():
    x = torch.full((1000,), 0.01, dtype=torch.float64)
    x[500] = 2.0
    gain = Limiter(0.0, lookahead_ms=1.0, release_ms=1e9, fs=FS)(x) / x
    expected = 1 - 0.5 * (torch.arange(1000) - 500 + 49).clamp(0, 49) / 49
    assert torch.allclose(gain[:501], expected[:501].double(), atol=1e-9)


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"ratio must lie in \[1, inf\], got 0.5"):
        Compressor(ratio=0.5)
    with pytest.raises(ArgumentTypeError, match=r"sidechain must be a filter or an effect that streams.*Normalize"):
        Compressor(sidechain=fx.effect.Normalize())
    with pytest.raises(ArgumentError, match=r"sidechain must not lag behind its input, got WithContext with 5 samples"):
        Compressor(sidechain=fx.WithContext(torch.nn.Identity(), 0, 5), fs=FS)(torch.zeros(2, 10))
    with pytest.raises(ArgumentError, match=r"key must hold 10 samples of torch\.float32 on cpu, got 9"):
        Compressor(fs=FS).keyed(torch.zeros(10), torch.zeros(9))
    with pytest.raises(ArgumentError, match="lookahead_ms cannot be learned here"):
        Limiter(lookahead_ms=torch.tensor(1.0, requires_grad=True))
    with pytest.raises(ArgumentError, match=r"lookahead_ms must lie in \[0, 1000\] ms, got 2000"):
        Limiter(lookahead_ms=2000.0)
