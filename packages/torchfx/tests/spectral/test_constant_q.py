"""Constant-Q and variable-Q transforms against their definition in float64, and back to the samples."""

import math
from random import Random

import numpy as np
import pytest
import torch

import torchfx as fx
from torchfx.design.constant_q import COSINES, LogBands, bandwidth_ratio, erb_offset
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.spectral import CQT, VQT, InverseCQT, InverseVQT

from .test_spectra import noise

LEAST_DB = {torch.float32: 120.0, torch.float64: 250.0}


def drawn(seed):
    """Return settings whose bins lie below half the rate, and whose frames have an inverse."""
    random = Random(seed)
    while True:
        fs, octave = random.choice([8000, 22_050, 44_100.0]), random.choice([1, 2, 5, 12, 24, 96])
        fmin, gamma = random.choice([3.0, 32.7, 440.0, fs / 3, fs / 2]), random.choice([0.0, 0.5, 60.0, fs / 4, None])
        n_bins = random.randint(1, int(octave * math.log2(fs / 2 / fmin) + 1e-9) + 1)
        offset = erb_offset(octave) if gamma is None else gamma
        widest = fs / (bandwidth_ratio(octave) * fmin * 2 ** ((n_bins - 1) / octave) + offset)
        if widest >= 1:
            hop = random.choice([1, random.randint(1, int(widest)), int(widest)])
            window = random.choice(list(COSINES))
            return {"hop_length": min(hop, 3000), "fmin": fmin, "n_bins": n_bins, "gamma": gamma,
                    "bins_per_octave": octave, "window": window, "fs": fs}  # fmt: skip


@pytest.mark.parametrize("dtype", LEAST_DB, ids=str)
@pytest.mark.parametrize("seed", range(24))
def test_the_inverse_gives_the_samples_again(seed, dtype):
    settings = drawn(seed)
    for time in (1, 2, 37, Random(seed).randint(100, 4000)):
        x = noise(2, time, dtype=dtype)
        y = VQT(residual=True, **settings)(x)
        assert y.shape[-1] == math.ceil(time / settings["hop_length"])
        back = InverseVQT(length=time, **settings)(y)
        assert back.dtype == dtype
        assert 20 * torch.log10(x.norm() / (back - x).norm().clamp(min=1e-300)) > LEAST_DB[dtype], (settings, time)


@pytest.mark.parametrize("seed", range(12))
def test_bins_are_inner_products_with_atoms(seed):
    """The definition, in float64: a circular convolution with each bin's atom, whose spectrum is its window."""
    settings = {**drawn(seed), "hop_length": 1 + seed % 5}
    x = noise(60, dtype=torch.float64)
    found = VQT(**settings)(x).numpy()
    hop, fs = settings["hop_length"], settings["fs"]
    samples = math.ceil(60 / hop) * hop
    frequencies = np.arange(samples // 2 + 1) * fs / samples
    turns = np.exp(2j * np.pi * np.outer(np.arange(samples), np.arange(samples // 2 + 1)) / samples)
    octave, gamma = settings["bins_per_octave"], settings["gamma"]
    offset = erb_offset(octave) if gamma is None else gamma
    for k in range(settings["n_bins"]):
        centre = settings["fmin"] * 2 ** (k / octave)
        u = (frequencies - centre) / ((2 ** (1 / octave) - 2 ** (-1 / octave)) * centre + offset)
        window = sum(a * np.cos(2 * np.pi * i * u) for i, a in enumerate(COSINES[settings["window"]]))
        atom = turns @ np.where((u >= -0.5) & (u < 0.5), window, 0) * 2 / samples
        for m in range(found.shape[-1]):
            expected = sum(float(x[n]) * atom[(m * hop - n) % samples] for n in range(60))
            assert abs(found[k, m] - expected) < 1e-9 * float(x.norm())


def test_derivatives_of_every_order():
    x = noise(2, 18, dtype=torch.float64).requires_grad_()
    module = CQT(hop_length=3, fmin=900, n_bins=5, fs=8000, residual=True)
    inverse = InverseCQT(hop_length=3, fmin=900, n_bins=5, fs=8000)
    assert torch.autograd.gradcheck(module, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(module, x)
    y = module(x).detach().requires_grad_()
    assert torch.autograd.gradcheck(inverse, y, check_forward_ad=True)


def test_compiled_and_exported_it_does_the_same():
    x = noise(2, 400)
    module = VQT(hop_length=8, fmin=500, n_bins=12, fs=8000, residual=True)
    inverse = InverseVQT(hop_length=8, fmin=500, n_bins=12, fs=8000)
    how = {"fullgraph": True, "dynamic": False, "backend": "aot_eager"}  # the length decides the tables
    y = torch.compile(module, **how)(x)
    assert torch.allclose(y, module(x), atol=1e-6)
    assert torch.allclose(torch.compile(inverse, **how)(y), x, atol=1e-5)
    assert torch.allclose(torch.export.export(module, (x,)).module()(x), y, atol=1e-6)


@pytest.mark.parametrize("k", [0, 9, 40, 83])
def test_a_sine_has_its_amplitude_in_its_bin(k):
    fs, centre = 22_050, 440 * 2 ** (-45 / 12) * 2 ** (k / 12)
    x = 0.7 * torch.sin(2 * torch.pi * centre / fs * torch.arange(3 * fs, dtype=torch.float64))
    inner = CQT(fs=fs)(x).abs()[:, 40:-40]
    assert (inner.argmax(0) == k).all()
    assert torch.allclose(inner[k], torch.full_like(inner[k], 0.7), atol=1e-3)


def test_centres_and_q():
    bands = LogBands(32.7, 84, 12, 0.0, "hann")
    assert np.allclose(bands.centres, 32.7 * 2.0 ** (np.arange(84) / 12), rtol=1e-14)
    assert np.allclose(bands.centres / bands.widths, 1 / (2 ** (1 / 12) - 2 ** (-1 / 12)), rtol=1e-14)
    wider = LogBands(32.7, 84, 12, erb_offset(12), "hann")
    assert np.ptp(wider.widths / (24.7 + 0.108 * wider.centres)) < 1e-12


def test_residual_rows_change_no_bin_and_count_few():
    settings = {"hop_length": 64, "fs": 44_100}
    x = noise(3000)
    whole = CQT(residual=True, **settings)(x)
    assert torch.allclose(whole[:84], CQT(**settings)(x), atol=1e-7)
    assert whole.shape[0] == CQT(residual=True, **settings).rows(44_100, residual=True) < 84 + 45


def test_leading_dimensions_and_views():
    module = CQT(hop_length=8, fmin=500, n_bins=12, fs=8000, residual=True)
    x = noise(400, 3, 2).movedim(0, -1)[..., ::2]
    y = module(x)
    assert torch.allclose(y[1, 0], module(x[1, 0].contiguous()), atol=1e-6)
    inverse = InverseCQT(hop_length=8, fmin=500, n_bins=12, fs=8000)
    rows = y.mT.contiguous().mT
    assert torch.allclose(inverse(rows), x, atol=1e-5)
    assert torch.allclose(torch.vmap(inverse)(torch.vmap(module)(x)), x, atol=1e-5)


def test_a_chain_gives_the_wave_again_and_filters_follow():
    wave = fx.Wave(noise(2, 3001), 22_050)
    chain = VQT(32, residual=True) | InverseVQT(32, length=3001) | fx.effect.Gain(1.0)
    assert float(((wave | chain).ys - wave.ys).abs().max()) < 1e-5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CQT(fmin=0.0), "fmin must lie in"),
        (lambda: CQT(fmin=4001, fs=8000), r"fmin must lie in \(0, fs/2\] = \(0, 4000\] Hz, got 4001"),
        (lambda: CQT(fmin=4001)(fx.Wave(noise(1, 50), 8000).ys), "fs"),
        (lambda: fx.Wave(noise(1, 50), 8000) | CQT(fmin=4001), r"\(0, 4000\] Hz, got 4001"),
        (lambda: CQT(fmin=1000, n_bins=26, fs=8000), r"n_bins must lie in \[1, 25\].* got 26"),
        (lambda: CQT(bins_per_octave=0), "bins_per_octave must be .*got 0"),
        (lambda: CQT(hop_length=0), "hop_length must be .*got 0"),
        (lambda: VQT(gamma=-1.0), "gamma must .*got -1"),
        (lambda: VQT(gamma=9000.0, fmin=100, n_bins=2, fs=8000, residual=True), "gamma must be lower"),
        (lambda: CQT(fs=44_100, residual=True), r"hop_length must lie in \[1, 96\] .* got 512"),
        (lambda: InverseCQT(hop_length=97, fs=44_100), r"hop_length must lie in \[1, 96\] .* got 97"),
        (lambda: InverseCQT(hop_length=64, fs=44_100)(noise(84, 5) + 0j), "x must have .* rows, n_bins = 84 .* got 84"),
        (lambda: InverseCQT(hop_length=64, fs=44_100)(noise(84, 5)), "x must be complex"),
        (
            lambda: InverseCQT(4, 1000, 25, length=17, fs=8000)(
                noise(InverseCQT(4, 1000, 25, fs=8000).rows(8000, True), 4) + 0j
            ),
            r"length must lie in \[13, 16\] samples for 4 frames, 4 apart, got 17",
        ),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        make()
