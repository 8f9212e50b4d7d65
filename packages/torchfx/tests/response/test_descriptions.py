"""Descriptions say of a filter what it was designed for; drawings show it."""

import importlib
import math
import sys

import pytest
import torch
from scipy import signal

import torchfx as fx
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.filter import (
    FIR,
    SOS,
    AllPass,
    BiquadBPF,
    BiquadBPFPeak,
    BiquadLPF,
    DesignableFIR,
    HiButterworth,
    HiShelving,
    LoButterworth,
    LoChebyshev1,
    LoShelving,
    Notch,
    ParametricEQ,
    Peaking,
    Weighting,
)
from torchfx.response.characteristics import characteristics
from torchfx.response.picture import as_text

FS = 48_000


def warped(cutoff, ratio):
    """Return the frequency that the bilinear transform makes of an analogue one so many times the cutoff."""
    return FS / math.pi * math.atan(ratio * math.tan(math.pi * cutoff / FS))


def around(cutoff, q):
    """Return the edges of a second-order band: where |t - 1/t| = 1/q."""
    root = math.hypot(0.5 / q, 1)
    return [warped(cutoff, root - 0.5 / q), warped(cutoff, root + 0.5 / q)]


ELLIPTIC = SOS(signal.ellip(4, 0.5, 40, [300, 3400], "bandpass", fs=FS, output="sos"))
RESONANT = math.sqrt(1 - 0.5 / 900 + math.sqrt((1 - 0.5 / 900) ** 2 + 1))  # |1 - t^2 + jt/30|^2 = 2


@pytest.mark.parametrize(
    ("module", "kind", "edges", "gain_db"),
    [
        (LoButterworth(1000, 4), "low-pass", [1000], 0),
        (LoButterworth(20, 12), "low-pass", [20], 0),
        (HiButterworth(80), "high-pass", [80], 0),
        (HiButterworth(80) | LoButterworth(12_000) | fx.effect.Gain("-6dB"), "band-pass", [80, 12_000], -6),
        (SOS(signal.butter(4, [300, 3400], "bandstop", fs=FS, output="sos")), "band-stop", [300, 3400], 0),
        (ELLIPTIC, "band-pass", [283.1, 3595], 0),  # its ends are level, 40 dB below
        (Peaking(1000, 2, 30.0), "peak", around(1000, 2), 30),  # so are these, 30 dB below
        (Notch(50, q=30), "band-stop", around(50, 30), 0),
        (BiquadLPF(1000, q=30.0), "low-pass", [warped(1000, RESONANT)], 0),
        (BiquadBPF(1000, q=4.0), "band-pass", around(1000, 4), 0),
        (BiquadBPFPeak(1000, q=4.0), "band-pass", around(1000, 4), 12.04),
        (DesignableFIR(3000, 101), "low-pass", [2806.0], 0.03),
        (FIR([1.0] + [0] * 9 + [1.0]), "multi-band", range(1200, 24_000, 2400), 6.02),
        (SOS([[0.01, 0, 0, 1, -0.99, 0]]), "low-pass", [76.78], 0),
        (Peaking(1000, 2, 6.0), "peak", around(1000, 2), 6),
        (Peaking(1000, 2, -24.0), "dip", around(1000, 2), -24),
        (LoShelving(100, gain_db=6.0), "low shelf", [100], 6),
        (HiShelving(8000, gain_db=-6.0), "high shelf", [8000], -6),
        (ParametricEQ([100, 1000, 8000], 0.7, [3, -2, 1.5]), "equaliser", [], 2.96),
        (AllPass(1000), "all-pass", [], 0),
        (FIR([0, 0, 0.5]), "gain", [], -6.02),
    ],
)
def test_what_a_filter_is_is_read_off_its_response(module, kind, edges, gain_db):
    (found,) = characteristics((module | fx.effect.Gain(1.0)).plan(FS))
    assert found.kind == kind
    assert found.edges_hz == pytest.approx(list(edges), rel=2e-4)
    assert found.gain_db == pytest.approx(gain_db, abs=0.03)


def test_numbers_in_a_description_are_the_filters_own():
    (found,) = characteristics(_plan(LoChebyshev1(1000, 5, ripple=0.5)))
    assert found.ripple_db == pytest.approx(0.5, abs=1e-3)
    ((freq, db),) = found.octave_beyond
    expected = abs(signal.sosfreqz(signal.cheby1(5, 0.5, 1000, fs=FS, output="sos"), freq, fs=FS)[1]).item()
    assert 10 ** (db / 20) == pytest.approx(expected, rel=1e-3)
    poles = signal.cheby1(5, 0.5, 1000, fs=FS, output="zpk")[1]
    assert found.pole_radius == pytest.approx(abs(poles).max(), abs=1e-12)
    (resonant,) = characteristics(_plan(BiquadLPF(1000, q=8.0)))
    assert resonant.resonance == pytest.approx((996.6, 18.08), rel=1e-3)
    (peak,) = characteristics(_plan(Peaking(1000, 2, 6.0)))
    assert peak.centre_hz == pytest.approx(1000, rel=1e-4)


def _plan(module):
    return fx.FilterChain(module).plan(FS)


def test_sentences():
    assert DesignableFIR(3000, 101).describe(FS).endswith("Linear phase: delay 50 samples (1.04 ms). No poles: stable.")
    assert fx.effect.Gain(0.0).describe(FS) == "Silence: no frequency passes. No poles: stable."
    assert fx.effect.Gain(1.0).describe(FS).startswith("Gain: +0.00 dB at every frequency.")
    assert BiquadLPF(1000, q=8.0).describe(FS).count("Resonance of +18.08 dB at 996.6 Hz.") == 1
    comb = FIR([1.0] + [0] * 9 + [1.0]).describe(FS)
    assert "Multi-band: -3 dB at 1200 Hz, 3600 Hz, 6000 Hz, ... (10 edges)" in comb
    text = LoButterworth(20, 12).describe(FS)
    assert "it decays by 60 dB in 421 ms" in text


def test_a_drawing_in_characters_falls_where_the_response_does():
    lines = as_text(_plan(LoButterworth(1000, 4)), width=80, height=16).splitlines()
    assert len(lines) == 19
    assert all(len(line) <= 82 and line.isascii() for line in lines)
    curve = [line.partition("|")[2] for line in lines[1:-2]]
    assert curve[1].startswith("*" * 30)  # 0 dB, one line below the +6 dB of the top
    ends = [line.rindex("*") for line in curve[1:] if "*" in line]
    assert ends == sorted(ends)
    dots = as_text(_plan(LoButterworth(1000, 4)), width=60, height=8, unicode=True)
    assert any("\u2800" < letter <= "\u28ff" for letter in dots)
    with pytest.raises(ArgumentError, match="width and height must be at least 40 and 4 characters, got 30 and 16"):
        as_text(_plan(LoButterworth(1000)), width=30)


def test_plots_and_notebooks(monkeypatch):
    learned = LoButterworth(torch.nn.Parameter(torch.tensor([[500.0], [1000.0]])))
    magnitude, delay = learned.plot(FS).axes
    assert len(magnitude.lines) == len(delay.lines) == 2
    freqs, gains = magnitude.lines[1].get_data()
    assert gains[abs(freqs - 1000).argmin()] == pytest.approx(-3.01, abs=0.05)
    chain = LoButterworth(1000, fs=FS) | fx.effect.Gain(0.5)
    assert chain._repr_html_().startswith("<pre>FilterChain(\n  (0): LoButterworth(cutoff=1000, order=2, fs=48000)")
    assert "data:image/png;base64," in chain._repr_html_()
    assert fx.effect.Normalize()._repr_html_() is None
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    importlib.invalidate_caches()
    with pytest.raises(TorchFXError, match=r"a picture needs matplotlib: pip install matplotlib"):
        chain.plot()
    assert chain._repr_html_() is None


@pytest.mark.parametrize(("curve", "low", "high"), [("A", 651, 8900), ("C", 31.8, 7900)])
def test_a_peak_of_octaves_is_a_pass_band_and_no_resonance(curve, low, high):
    (found,) = characteristics(fx.FilterChain(Weighting(curve)).plan(192_000))
    assert (found.kind, found.resonance) == ("band-pass", None)
    assert found.edges_hz == pytest.approx((low, high), rel=2e-3)
