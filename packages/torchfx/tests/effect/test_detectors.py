"""RMS detection, look-ahead and infinite ratios of compressors, expanders and gates."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx import spec
from torchfx.effect import Compressor, DeEsser, Expander, Limiter, MultibandCompressor, NoiseGate
from torchfx.errors import ArgumentError
from torchfx.realtime import Stream

FS = 48_000
CLASSES = (Compressor, Expander, NoiseGate)


def noise(generator, seconds=0.3):
    x = torch.randn(2, round(seconds * FS), generator=generator, dtype=torch.float64)
    return x * torch.linspace(0.01, 0.5, x.shape[-1], dtype=torch.float64)


def gain_db(curve_db, rise, fall, start):
    """Smooth a gain in dB sample by sample."""
    y, out = start, np.empty_like(curve_db)
    for t, wanted in enumerate(curve_db):
        y += (rise if wanted > y else fall) * (wanted - y)
        out[t] = y
    return out


def share(ms):
    return -math.expm1(-1000 / (ms * FS))


@pytest.mark.parametrize("link", [False, True])
def test_rms_is_the_root_of_the_mean_square(generator, link):
    x = noise(generator).numpy()
    c = share(5.0)
    squares = signal.lfilter([c], [1, c - 1], x**2)
    level = 10 * np.log10(squares.max(0, keepdims=True) if link else squares)
    wanted = -0.75 * np.maximum(level + 30, 0)
    gain = np.stack([gain_db(row, share(50.0), share(2.0), 0.0) for row in wanted])
    module = Compressor(-30, 4, 2.0, 50.0, knee_db=0, link=link, detector="rms", rms_ms=5.0, fs=FS)
    found = module(torch.from_numpy(x)).numpy()
    assert np.abs(found - x * 10 ** (gain / 20)).max() < 1e-12


def test_a_tone_counts_3_db_less_by_its_mean_square():
    """With a mean over 100 periods, below a threshold at its peak and above one 4 dB lower."""
    x = 0.5 * torch.sin(2 * math.pi * 1000 / FS * torch.arange(2 * FS, dtype=torch.float64))
    level = 20 * math.log10(0.5) - 3.0103
    for ratio, threshold in ((2.0, level - 6), (10.0, level - 1), (4.0, level + 1)):
        module = Compressor(threshold, ratio, knee_db=0, detector="rms", rms_ms=100.0, fs=FS)
        expected = 0.5 * 10 ** ((1 / ratio - 1) * max(level - threshold, 0) / 20)
        assert float(module(x)[-FS // 10 :].abs().max()) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("cls", CLASSES)
def test_knees_are_as_wide_with_squares(cls):
    """A constant level is its own root of the mean square."""
    given = torch.linspace(-50, 0, 51, dtype=torch.float64)
    x = 10 ** (given[:, None] / 20) * torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(FS // 4)
    both = [cls(-20.0, 3.0, knee_db=12.0, link=False, detector=each, fs=FS)(x)[:, -1] for each in ("peak", "rms")]
    torch.testing.assert_close(*both, rtol=1e-6, atol=0)


@pytest.mark.parametrize("detector", ["peak", "rms"])
@pytest.mark.parametrize("cls", CLASSES)
def test_look_ahead_moves_the_gain_before_the_signal(generator, cls, detector):
    x, ahead = noise(generator), 96
    now = cls(-20.0, 4.0, detector=detector, fs=FS)
    later = cls(-20.0, 4.0, detector=detector, lookahead_ms=2.0, fs=FS)
    assert later.latency_samples(FS) == ahead
    gain = now(torch.nn.functional.pad(x, (0, ahead))) / torch.nn.functional.pad(x, (0, ahead), value=1.0)
    assert torch.allclose(later(x)[:, :-ahead], x[:, :-ahead] * gain[:, ahead:-ahead], rtol=1e-9, atol=0)


def test_look_ahead_lets_the_beginning_of_a_burst_through_a_gate():
    x = torch.zeros(FS)
    x[24_000:] = 0.5
    now, later = (NoiseGate(-40.0, attack_ms=1.0, lookahead_ms=each, fs=FS)(x) for each in (0.0, 10.0))
    assert float(now[24_000]) < 0.1 * float(later[24_000])
    assert float(later[24_000]) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_key_is_heard_before_the_signal_that_it_moves(generator, cls):
    x, key = noise(generator), noise(generator)[:1]
    module = cls(-20.0, 4.0, lookahead_ms=1.0, detector="rms", fs=FS)
    whole, _ = module.keyed(x, key)
    first, state = module.keyed(x[:, :333], key[:, :333])
    second, _ = module.keyed(x[:, 333:], key[:, 333:], state)
    assert torch.allclose(torch.cat([first, second], -1), whole, rtol=1e-12)
    own, _ = cls(-20.0, 4.0, detector="rms", fs=FS).keyed(torch.nn.functional.pad(x, (48, 0))[..., : x.shape[-1]], key)
    assert torch.allclose(whole, own, rtol=1e-12)


def test_a_compressor_of_infinite_ratio_lets_nothing_above_its_threshold():
    x = torch.linspace(-40, 20, 61, dtype=torch.float64)
    module = Compressor(-20.0, math.inf, attack_ms=0.0, release_ms=0.0, knee_db=0.0, fs=FS)
    y = 20 * torch.log10(module(10 ** (x / 20)))
    assert torch.allclose(y, x.clamp(max=-20), atol=1e-6)
    assert repr(module).startswith("Compressor(threshold_db=-20, ratio=inf")


@pytest.mark.parametrize("cls", [Expander, NoiseGate])
@pytest.mark.parametrize("knee", [0.0, 6.0])
def test_an_expander_of_infinite_ratio_is_all_or_nothing(cls, knee):
    x = torch.linspace(-60, 0, 61, dtype=torch.float64)
    gain = cls(-20.0, math.inf, knee_db=knee, range_db=50.0, attack_ms=0.0, release_ms=0.0, fs=FS)
    gain.hold_ms = 0.0
    found = 20 * torch.log10(gain(10 ** (x / 20))) - x
    assert torch.allclose(found[x < -20 - knee / 2], torch.tensor(-50.0).double(), atol=1e-6)
    assert torch.allclose(found[x > -20 + knee / 2], torch.tensor(0.0).double(), atol=1e-6)


def test_infinite_ratios_are_texts_tensors_and_bands_too(generator):
    assert spec.build("compressor:-20dB,ratio=inf").ratio == math.inf
    assert spec.build("multibandcompressor:[200,2000],ratio=[2,inf,inf]").ratio == (2, math.inf, math.inf)
    x = noise(generator)
    each = torch.tensor([2.0, math.inf])
    together = Compressor(-20.0, each, link=False, fs=FS)(x)
    for i, ratio in enumerate((2.0, math.inf)):
        assert torch.allclose(together[i], Compressor(-20.0, ratio, fs=FS)(x[i]), rtol=1e-12)
    assert torch.isfinite(DeEsser(ratio=math.inf, fs=FS)(x)).all()
    assert torch.isfinite(MultibandCompressor(ratio=math.inf, fs=FS)(x)).all()
    learned = torch.tensor(math.inf, dtype=torch.float64, requires_grad=True)
    for cls in CLASSES:
        cls(-20.0, learned, fs=FS)(x).square().sum().backward()
    assert torch.isfinite(learned.grad)
    for wrong in (-math.inf, math.nan, 0.5):
        with pytest.raises(ArgumentError, match="ratio must"):
            Compressor(ratio=wrong)
        with pytest.raises(ArgumentError, match="ratio must"):
            Compressor(ratio=torch.tensor([wrong, 2.0]))


def test_times_of_the_mean_square_are_learned(generator):
    x = noise(generator, 0.02)
    time = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)

    def loss(time):
        return Compressor(-30.0, detector="rms", rms_ms=time, fs=FS)(x).square().sum()

    loss(time).backward()
    with torch.no_grad():
        expected = (loss(time + 1e-4) - loss(time - 1e-4)) / 2e-4
    assert float(time.grad) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("cls", CLASSES)
def test_detectors_and_look_ahead_change_while_a_stream_runs(generator, cls):
    """Every second of them: after a second the stream gives what the new settings give."""
    x = torch.randn(2, 4 * FS, generator=generator, dtype=torch.float64) * 0.2
    module = cls(-20.0, fs=FS)
    stream, parts = Stream(module, FS, 2), []
    changes = {FS: ("detector", "rms"), 2 * FS: ("rms_ms", 100.0), 3 * FS: ("lookahead_ms", 3.0)}
    for start in range(0, 4 * FS, 480):
        if start in changes:
            setattr(module, *changes[start])
        parts.append(stream.process(x[:, start : start + 480]))
    y = torch.cat(parts, dim=-1)
    assert torch.isfinite(y).all()
    late = module.latency_samples(FS)
    expected = module(x)
    assert torch.allclose(y[:, -4800:], expected[:, -4800 - late : -late], atol=1e-6)


@pytest.mark.parametrize("cls", [Compressor, Limiter])
@pytest.mark.parametrize("lookaheads_ms", [(0.0, 50.0), (20.0, 0.3, 75.0)])
def test_a_longer_look_ahead_is_heard_when_its_delay_has_filled(cls, lookaheads_ms):
    """A tone below the threshold goes on without a step."""
    x = 0.1 * torch.sin(2 * math.pi * 300 / FS * torch.arange(FS, dtype=torch.float64)).expand(2, -1)
    module = cls(0.0, lookahead_ms=lookaheads_ms[0], fs=FS)
    stream, parts = Stream(module, FS, 2), []
    for i, block in enumerate(x.split(64, dim=-1)):
        if 0 <= i - 300 < len(lookaheads_ms):
            module.lookahead_ms = lookaheads_ms[i - 300]
        parts.append(stream.process(block))
    y = torch.cat(parts, dim=-1)[:, FS // 4 :]
    assert y.diff(n=2).abs().max() < 3 * x.diff(n=2).abs().max()
