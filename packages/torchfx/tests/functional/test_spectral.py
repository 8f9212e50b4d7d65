"""welch, hilbert and envelope against SciPy's in float64."""

import warnings

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import FLOAT32_BOUND, deviation
from torchfx import functional as F
from torchfx.errors import ArgumentError, ArgumentTypeError

LENGTHS = (1, 2, 17, 1023, 1025)
needs_envelope = pytest.mark.skipif(not hasattr(signal, "envelope"), reason="SciPy before 1.15 has none")


def views(rng, time):
    """Seventeen channels, as they are, strided, with time first, and none."""
    x = rng.standard_normal((17, time))
    yield x, torch.from_numpy(x), -1
    yield x[::2], torch.from_numpy(x)[::2], 1
    yield x.T, torch.from_numpy(x.T.copy()), 0
    yield np.repeat(x[:, None], 2, 1), torch.from_numpy(x)[:, None].expand(17, 2, time), 2


SETTINGS = [
    {},
    {"nperseg": 64, "noverlap": 63, "detrend": "linear"},
    {"nperseg": 51, "nfft": 64, "scaling": "spectrum", "window": ("kaiser", 8.0)},
    {"nperseg": 100, "noverlap": 0, "detrend": False, "return_onesided": False},
    {"nperseg": 33, "average": "median", "window": "boxcar"},
    {"nperseg": 40, "average": "median", "return_onesided": False},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("time", LENGTHS)
def test_welch_is_scipys(rng, time, settings):
    if settings.get("noverlap", 0) >= time:
        pytest.skip("no segment is longer than what neighbours share")
    for x, given, axis in views(rng, time):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where the segment is longer than the signal
            expected = signal.welch(x, 8000.0, axis=axis, **settings)
        found = F.welch(given, 8000.0, axis=axis, **settings)
        assert np.allclose(found[0], expected[0], rtol=1e-15)
        assert found[1].shape == expected[1].shape
        assert deviation(found[1], expected[1]) < 1e-12
    assert deviation(F.welch(given.float(), 8000.0, axis=axis, **settings)[1], expected[1]) < 3 * FLOAT32_BOUND
    assert F.welch(torch.zeros(0, 3, time), **settings)[1].shape[:2] == (0, 3)


def test_welch_takes_windows_and_functions(rng):
    x = torch.from_numpy(rng.standard_normal((2, 5000)))
    window = rng.random(321)
    expected = signal.welch(x.numpy(), window=window, detrend=lambda each: each - each[..., :1])[1]
    for given in (window, torch.tensor(window), window.tolist()):
        found = F.welch(x, window=given, detrend=lambda each: each - each[..., :1])[1]
        assert deviation(found, expected) < 1e-12


def test_welch_of_long_signals_is_summed_in_pieces(rng, monkeypatch):
    x = torch.from_numpy(rng.standard_normal((3, 4000)))
    for average in ("mean", "median"):
        whole = F.welch(x, average=average)[1]
        monkeypatch.setattr("torchfx.functional.spectral.CHUNK", 2000)
        assert torch.allclose(F.welch(x, average=average)[1], whole, rtol=1e-13)
        monkeypatch.undo()


def test_power_is_kept():
    """Parseval: with a rectangle and no overlap, the densities add up to the mean square."""
    x = torch.randn(4, 4096, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    f, p = F.welch(x, 100.0, "boxcar", 512, 0, detrend=False)
    assert torch.allclose(p.sum(-1) * (f[1] - f[0]), x.square().mean(-1), rtol=1e-13)


@pytest.mark.parametrize("time", LENGTHS)
def test_hilbert_is_scipys(rng, time):
    for x, given, axis in views(rng, time):
        for n in (None, time + 3, max(1, time // 2)):
            assert np.allclose(F.hilbert(given, n, axis), signal.hilbert(x, n, axis), rtol=0, atol=1e-13)
    assert F.hilbert(given.float()).dtype == torch.complex64


BANDS = [(1, None), (None, None), (0, 5), (3, 9), (-4, 6), (2, 3), (-6, -2)]


@needs_envelope
@pytest.mark.parametrize("residual", ["lowpass", "all", None])
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("time", [17, 64])
def test_envelope_is_scipys(rng, time, band, residual):
    for x, given, axis in views(rng, time):
        for n_out in (None, time // 2, 2 * time, 3):
            options = {"n_out": n_out, "residual": residual, "axis": axis, "squared": n_out == 3}
            expected, found = signal.envelope(x, band, **options), F.envelope(given, band, **options)
            assert found.shape == expected.shape
            assert np.allclose(found, expected, rtol=0, atol=1e-12)


def test_an_envelope_is_what_a_tone_was_multiplied_by():
    time = torch.arange(1025, dtype=torch.float64) / 1025
    swell = 2 + torch.cos(2 * torch.pi * 3 * time)
    tone = torch.cos(2 * torch.pi * 200 * time + 1)
    found, rest = F.envelope(swell * tone + 0.25, (100, 300), residual="all")
    assert torch.allclose(found, swell, atol=1e-12)
    assert torch.allclose(rest, torch.full_like(rest, 0.25), atol=1e-12)
    assert F.envelope(torch.zeros(0, 2, 50)).shape == (2, 0, 2, 50)
    assert F.envelope(torch.ones(3, 1), (0, None), residual=None).tolist() == [[1.0], [1.0], [1.0]]


def test_all_pass_gradients(rng):
    x = torch.from_numpy(rng.standard_normal(16)).requires_grad_()
    for call in (
        lambda x: F.welch(x, nperseg=8, detrend="linear")[1],
        lambda x: F.welch(x, nperseg=8, average="median")[1],
        lambda x: F.hilbert(x).abs(),
        lambda x: F.envelope(x, (2, 7), n_out=10),
    ):
        assert torch.autograd.gradcheck(call, (x,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.welch(x, nperseg=10, noverlap=10), "noverlap must be a whole number <= 9, got 10"),
        (lambda x: F.welch(x, nperseg=10, nfft=9), "nfft must be a whole number >= 10, got 9"),
        (lambda x: F.welch(x, window=[1.0] * 60), "window must have the shape .* at most as long as the signal, 50"),
        (lambda x: F.welch(x, window=[1.0] * 20, nperseg=10), r"window must have the shape \(10,\)"),
        (lambda x: F.welch(x, scaling="power"), "scaling must be one of density, spectrum, got 'power'"),
        (lambda x: F.welch(x, average="mode"), "average must be one of mean, median, got 'mode'"),
        (lambda x: F.welch(x, detrend="mean"), 'detrend must be "constant", "linear", False or a function'),
        (lambda x: F.welch(x, fs=0), r"fs must lie in \(0, inf\) Hz"),
        (lambda x: F.hilbert(x, 0), "N must be a whole number >= 1, got 0"),
        (lambda x: F.envelope(x, (5, 5)), r"bp_in must be first < last, both within \[-25, 25\]"),
        (lambda x: F.envelope(x, residual="some"), "residual must be one of lowpass, all, got 'some'"),
        (lambda x: F.envelope(x.to(torch.complex64)), "x must be real"),
        (lambda x: F.welch(x, axis=1), "axis must be one of the signal's 1 dimensions, got 1"),
    ],
)
def test_misuse_is_said(call, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        call(torch.zeros(50))
