"""Filter banks: where their bands lie, what their filters let through, and limits of standards."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from torchfx.design.bands import gammatone
from torchfx.errors import ArgumentError
from torchfx.filter import BandpassBank, ERBFilterBank, GammatoneBank, LogFilterBank, MelFilterBank, OctaveBank

FS = 48_000

# IEC 61260-1:2014, table 1: least and greatest relative attenuation of class 1 (dB), at powers of 10^0.3 for octaves.
# The table is sold; free programs for room acoustics quote it.
EXPONENTS = np.array([0, 1 / 8, 1 / 4, 3 / 8, 0.5 - 1e-6, 0.5 + 1e-6, 1, 2, 3, 4])
LEAST = np.array([-0.4, -0.4, -0.4, -0.4, -0.4, 1.2, 16.6, 40.5, 60, 70])
MOST = np.array([0.4, 0.5, 0.7, 1.4, 5.3, 5.3, np.inf, np.inf, np.inf, np.inf])


def breakpoints(fraction):
    """Return normalised frequencies of the limits: formulas 10 and 11 of the standard."""
    octave = 10**0.3
    high = 1 + (octave ** (0.5 / fraction) - 1) / (octave**0.5 - 1) * (octave**EXPONENTS - 1)
    return np.concatenate([high, 1 / high])


@pytest.mark.parametrize(("fraction", "f_max"), [(1, 16_000), (3, 20_000), (6, 19_000)])
def test_octave_bands_keep_to_class_1(fraction, f_max):
    bank = OctaveBank(fraction, 20, f_max, fs=FS)
    least, most = np.tile(LEAST, 2), np.tile(MOST, 2)
    for i, midband in enumerate(bank.midbands):
        freqs = midband * breakpoints(fraction)
        heard = freqs <= FS / 2
        attenuation = -fx.filter.SOS(bank.sos[i]).magnitude_db(freqs[heard], FS).numpy()
        assert (attenuation >= least[heard]).all()
        assert (attenuation <= most[heard]).all()


def test_octave_bands_lie_where_the_standard_says():
    third = OctaveBank(3, 20, 20_000)
    assert third.bands == 31
    assert third.midbands == pytest.approx(1000 * 10 ** (np.arange(-17, 14) / 10))
    assert OctaveBank(1, 31.5, 8000).midbands == pytest.approx(1000 * 10 ** (0.3 * np.arange(-5, 4)))
    half = OctaveBank(2, 500, 2000)  # midbands of even fractions lie half a band beside 1 kHz
    assert all(abs(math.log(f / 1000, 10**0.15) % 1 - 0.5) < 1e-9 for f in half.midbands)
    edges = third.edges
    assert [high for _, high in edges[:-1]] == pytest.approx([low for low, _ in edges[1:]])
    assert abs(third.magnitude_db(edges[15][0], FS)[15] + 3.0103) < 1e-4


@pytest.mark.parametrize(
    ("cls", "warp"),
    [
        (LogFilterBank, np.log),
        (MelFilterBank, lambda f: 2595 * np.log10(1 + f / 700)),
        (ERBFilterBank, lambda f: 21.4 * np.log10(1 + 0.00437 * f)),
    ],
)
def test_bands_are_equally_wide_on_their_scale(cls, warp):
    bank = cls(7, 50, 16_000, order=4)
    steps = np.diff(warp(np.array(bank.edges)))
    assert steps == pytest.approx(np.full(7, steps[0]))
    for i in (0, 6):
        sos = signal.butter(4, bank.edges[i : i + 2], "bandpass", fs=FS, output="sos")
        freqs = np.geomspace(20, 23_000, 50)
        expected = signal.sosfreqz(sos, freqs, fs=FS)[1]
        assert abs(bank.response(freqs, FS)[i].numpy() - expected).max() < 1e-9


@pytest.mark.parametrize(("centre", "fs"), [(50, 400), (1000, 16_000), (4000, 48_000), (16_000, 48_000)])
def test_gammatone_filters_against_scipy(centre, fs):
    freqs = np.linspace(fs / 1000, fs / 2.1, 100)
    expected = abs(signal.freqz(*signal.gammatone(centre, "iir", fs=fs), freqs, fs=fs)[1])
    found = fx.filter.SOS(gammatone(centre, fs)).response(freqs, fs).abs().numpy()
    assert abs(found - expected).max() < 2e-4  # SciPy rounds the constants of the bandwidth


def test_gammatone_banks_have_unit_gain_at_their_centres():
    bank = GammatoneBank(32, 50, 16_000)
    assert abs(bank.response(bank.centres, FS).diagonal().abs() - 1).max() < 1e-9
    steps = np.diff(21.4 * np.log10(1 + 0.00437 * np.array(bank.centres)))
    assert steps == pytest.approx(np.full(31, steps[0]))


@pytest.mark.parametrize("bank", [OctaveBank(3, 20, 20_000), GammatoneBank(5), BandpassBank(3, scale="mel")])
def test_a_bank_is_one_call_and_equals_its_filters(bank):
    bank.fs = FS
    x = torch.randn(2, 1025, generator=torch.Generator().manual_seed(0))
    y = bank(x)
    assert y.shape == (2, bank.bands, 1025)
    expected = np.stack([signal.sosfilt(sos, x.double().numpy()) for sos in bank.sos.numpy()], axis=1)
    assert abs(y.numpy() - expected).max() < 2e-7 * abs(expected).max()
    assert "-> 1 operator call" in repr(fx.FilterChain(bank).plan())


def test_responses_of_chains_have_the_dimension_of_bands():
    each = fx.filter.LoButterworth(torch.tensor([[5000.0], [9000.0]]))  # one for each of two examples
    summed = each + fx.effect.Gain(0.5)
    bank = LogFilterBank(3, 100, 10_000)
    freqs = [50.0, 1000.0]
    for before in (each, summed):
        found = (before | bank).response(freqs, FS)
        assert found.shape == (2, 1, 3, 2)
        assert torch.allclose(found, before.response(freqs, FS)[..., None, :] * bank.response(freqs, FS))
        assert (before | bank).group_delay(freqs, FS).shape == (2, 1, 3, 2)
        assert (before | bank).poles(FS).shape[:-1] == (2, 1, 3)
    assert bank.describe(FS).splitlines()[1].startswith("2 of 3: Band-pass: -3 dB at 464.2 Hz and 2154 Hz;")


def test_misuse_is_told():
    for cls in (LogFilterBank, OctaveBank, GammatoneBank):
        with pytest.raises(ArgumentError, match="f_max must lie above f_min > 0, got 1000 and 100 Hz"):
            cls(f_min=1000, f_max=100)
    message = "f_max must leave the highest band below fs/2 = 22050 Hz, got an edge at 22387.2 Hz"
    with pytest.raises(ArgumentError, match=message):
        OctaveBank(3, 20, 20_000, fs=44_100)
    bank = OctaveBank(3, 20, 20_000)
    with pytest.raises(ArgumentError, match=message):
        bank.response(100, 44_100)
    with pytest.raises(ArgumentError, match=r"f_max must lie in \(0, fs/2\) = \(0, 8000\) Hz, got 20000"):
        LogFilterBank(f_max=20_000, fs=16_000)
    with pytest.raises(ArgumentError, match="got an edge at 20000 Hz; pass a lower one, or fs and no f_max"):
        fx.Wave(torch.zeros(100), 16_000) | LogFilterBank()
    with pytest.raises(ArgumentError, match="num_bands must be a whole number <= 4096, got 2147483648"):
        MelFilterBank(2**31, fs=FS)
    with pytest.raises(ArgumentError, match="scale must be one of log, mel, erb, got 'bark'"):
        BandpassBank(scale="bark")


@pytest.mark.parametrize("fs", [4000, 8000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("cls", [LogFilterBank, MelFilterBank, ERBFilterBank, OctaveBank, GammatoneBank])
def test_a_bank_reaches_as_high_as_the_rate_allows(cls, fs):
    bank = cls(fs=fs)
    highest = bank.edges[-1][1] if cls is OctaveBank else bank.f_max
    usual = 20_000 if issubclass(cls, BandpassBank) else 16_000
    assert (bank.f_max == usual) if fs > 44_000 else (0.35 * fs < highest < 0.5 * fs)
    assert bank(torch.zeros(1, 8)).shape == (1, bank.bands, 8)
    assert OctaveBank(1, fs=48_000).midbands[-1] == pytest.approx(15_848.93, abs=0.01)
    assert OctaveBank(1, fs=44_100).midbands[-1] == pytest.approx(7943.28, abs=0.01)  # 15 849 Hz ends beyond fs/2
