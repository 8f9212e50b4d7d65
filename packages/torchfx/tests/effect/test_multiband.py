"""Compression in bands."""

import math

import pytest
import torch

import torchfx as fx
from torchfx.effect import DeEsser, MultibandCompressor
from torchfx.errors import ArgumentError

FS = 48_000


def tone(hz, amplitude=1.0, seconds=1.0):
    return amplitude * torch.sin(2 * math.pi * hz / FS * torch.arange(round(seconds * FS), dtype=torch.float64))


def level(y, hz):
    """Amplitude in dB of one frequency in the last half second, a whole number of its periods."""
    y = y[..., -FS // 2 :]
    phase = 2 * math.pi * hz / FS * torch.arange(FS // 2, dtype=torch.float64)
    return 20 * math.log10(2 / len(phase) * math.hypot(float((y * phase.cos()).sum()), float((y * phase.sin()).sum())))


def test_without_compression_only_the_phase_changes(generator):
    x = torch.randn(2, 5000, generator=generator, dtype=torch.float64)
    y = MultibandCompressor((200.0, 2000.0), ratio=1.0, fs=FS)(x)
    assert torch.allclose(y, fx.filter.Crossover([200, 2000], 4, fs=FS)(x).sum(-2), atol=1e-12)


def test_each_band_is_compressed_by_its_own_level():
    module = MultibandCompressor(
        (500.0, 2000.0), threshold_db=(-20.0, 0.0, -30.0), ratio=(4.0, 4.0, 2.0), attack_ms=0.0, release_ms=500.0,
        knee_db=0.0, fs=FS,
    )  # fmt: skip
    y = module(tone(50) + tone(10_000, 0.1))
    # The peaks count: 0 dB in the low band is 20 dB above the threshold, -20 dB in the high one 10 dB.
    assert level(y, 50) == pytest.approx(-15, abs=0.1)
    assert level(y, 10_000) == pytest.approx(-25, abs=0.1)


def test_examples_have_bands_of_their_own(generator):
    x = torch.randn(3, 2, 2000, generator=generator)
    thresholds = torch.tensor([[-30.0, -20.0], [-10.0, -40.0], [0.0, 0.0]])
    together = MultibandCompressor((1000.0,), threshold_db=thresholds[:, None], fs=FS)(x)
    for i, each in enumerate(thresholds.tolist()):
        alone = MultibandCompressor((1000.0,), threshold_db=each, fs=FS)(x[i])
        assert torch.allclose(together[i], alone, atol=1e-6)


def test_values_must_fit_the_bands():
    with pytest.raises(ArgumentError, match="ratio must hold one value, or one for each of 3 bands, got 2"):
        MultibandCompressor((200.0, 2000.0), ratio=(2.0, 4.0))


def test_a_de_esser_softens_what_lies_above():
    x = tone(100, 0.5) + tone(9000, 0.5)
    y = DeEsser(-26.0, 1000.0, ratio=2.0, attack_ms=0.0, release_ms=500.0, fs=FS)(x)
    assert level(y, 100) == pytest.approx(level(x, 100), abs=0.05)
    above = 20 * math.log10(0.5) + 26
    assert level(y, 9000) == pytest.approx(-26 + above / 2, abs=0.2)


@pytest.mark.parametrize("cls", [DeEsser, MultibandCompressor])
def test_silence_stays_silent_and_extremes_finite(generator, cls):
    assert torch.equal(cls(fs=FS)(torch.zeros(2, 3000)), torch.zeros(2, 3000))
    loud = torch.randn(2, 3000, generator=generator) * 1e3
    extremes = {"threshold_db": (-200.0, 200.0), "ratio": (1.0, 1e12), "attack_ms": (0.0, 1e9)}
    for end in (0, 1):
        given = {name: both[end] for name, both in extremes.items() if name in cls.declarations}
        assert bool(torch.isfinite(cls(**given, fs=FS)(loud)).all())
