"""Test signals: their frequencies, levels and lengths, and that no block's edge is heard."""

import numpy as np
import pytest
import torch

from command import run_here
from torchfx import audio_io, synthesis
from torchfx.errors import ArgumentError
from torchfx.synthesis import KINDS, synthesize

FS = 48_000


def made(folder, kind, **how):
    path = folder / f"{kind}.wav"
    synthesize(kind, path, **{"rate": FS, **how})
    return audio_io.load(path)[0].double().numpy()


def test_a_sine_is_one(tmp_path):
    y = made(tmp_path, "sine", length=2.5, tone=997.0, level_db=-6.0)
    expected = 10 ** (-6 / 20) * np.sin(2 * np.pi * 997 * np.arange(120_000) / FS)
    assert y.shape == (1, 120_000)
    assert np.abs(y[0] - expected).max() < 3e-5


@pytest.mark.parametrize(
    ("kind", "amplitudes"),
    [
        ("square", lambda n: n % 2 / n),
        ("saw", lambda n: 1.0 / n),
        ("triangle", lambda n: (n % 2) / n**2),
    ],
)
@pytest.mark.parametrize("tone", [60.0, 3000.0, 9000.0])
def test_a_tone_has_its_harmonics_and_no_aliases(tmp_path, kind, amplitudes, tone):
    spectrum = np.abs(np.fft.rfft(made(tmp_path, kind, length=1.0, tone=tone)[0])) / (FS / 2)
    count = int(np.ceil(FS / 2 / tone)) - 1
    harmonics = (np.arange(1, count + 1) * tone).astype(int)
    found = spectrum[harmonics] / spectrum[harmonics[0]]
    assert np.abs(found - amplitudes(np.arange(1, count + 1))).max() < 1e-4
    spectrum[harmonics] = 0
    assert spectrum.max() < 1e-4


@pytest.mark.parametrize("kind", ["sine", "square", "saw", "triangle", "chirp"])
def test_the_level_of_a_tone_is_its_peak(tmp_path, kind):
    y = made(tmp_path, kind, length=1.0, level_db=-12.0)
    assert abs(20 * np.log10(np.abs(y).max()) + 12) < 0.05


@pytest.mark.parametrize("kind", ["white", "pink", "brown"])
def test_the_level_of_noise_is_its_rms_and_channels_differ(tmp_path, kind):
    y = made(tmp_path, kind, length=20.0, level_db=-30.0, channels=2)
    rms = 20 * np.log10(np.sqrt((y**2).mean(1)))
    assert np.abs(rms + 30).max() < {"white": 0.1, "pink": 1.0, "brown": 3.0}[kind]
    assert abs(np.corrcoef(y)[0, 1]) < {"white": 0.01, "pink": 0.05, "brown": 0.3}[kind]


def test_a_chirp_rises_by_equal_ratios(tmp_path):
    y = made(tmp_path, "chirp", length=4.0, tone=100.0, end=6400.0)[0]
    crossings = np.flatnonzero((y[:-1] < 0) & (y[1:] >= 0)) / FS
    frequencies, at = 1 / np.diff(crossings), (crossings[1:] + crossings[:-1]) / 2
    expected = 100 * 64 ** (at / 4)
    assert np.abs(frequencies[:200] / expected[:200] - 1).max() < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_do_not_show(tmp_path, monkeypatch, kind):
    whole = made(tmp_path, kind, length="5000 samples", channels=2)
    monkeypatch.setattr(synthesis, "BLOCK", 777)
    assert np.abs(made(tmp_path, kind, length="5000 samples", channels=2) - whole).max() < 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "sinus"}, "kind must be one of sine, square"),
        ({"tone": 24_000}, r"tone must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"),
        ({"level_db": 3}, r"level_db must lie in \(-inf, 0\] dB, got 3"),
        ({"length": 0}, "length must be at least one sample, got 0"),
        ({"channels": 0}, "channels must be a whole number >= 1"),
    ],
)
def test_misuse_writes_nothing(tmp_path, change, message):
    with pytest.raises(ArgumentError, match=message):
        synthesize(**{"kind": "sine", "target": tmp_path / "a.wav", "rate": FS, **change})
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_wrote(tmp_path):
    ran = run_here("synth", "saw", "a.flac", "--length", "250ms", "--channels", "2", "--level", "-3dB", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "saw -> a.flac (0.25 s)\n")
    assert audio_io.info(tmp_path / "a.flac").channels == 2
    again = run_here("synth", "saw", "a.flac", folder=tmp_path)
    assert (again.returncode, again.stderr) == (2, "error: a.flac exists already; --force overwrites it\n")
    assert torch.isfinite(audio_io.load(tmp_path / "a.flac")[0]).all()
