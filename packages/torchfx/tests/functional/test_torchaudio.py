"""torchaudio's names and arguments: order of coefficients, clamping, batching, and its biquads by formula."""

import math

import pytest
import torch
from scipy import signal

from oracle import deviation
from torchfx.functional import torchaudio as F

FS = 16_000
X = torch.randn(2, 300, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.1


def section(f0, q, gain_db, numerator, denominator=None):
    """The cookbook's section, from functions of cos, alpha and A."""
    w0, big = 2 * math.pi * f0 / FS, 10 ** (gain_db / 40)
    c, alpha = math.cos(w0), math.sin(w0) / 2 / q
    plain = (1 + alpha, -2 * c, 1 - alpha)
    return numerator(c, alpha, big), plain if denominator is None else denominator(c, alpha, big)


def bass_numerator(c, alpha, a, side=1):
    t = 2 * math.sqrt(a) * alpha
    return (
        a * ((a + 1) - side * (a - 1) * c + t),
        side * 2 * a * ((a - 1) - side * (a + 1) * c),
        a * ((a + 1) - side * (a - 1) * c - t),
    )


def bass_denominator(c, alpha, a, side=1):
    t = 2 * math.sqrt(a) * alpha
    return (
        (a + 1) + side * (a - 1) * c + t,
        -side * 2 * ((a - 1) + side * (a + 1) * c),
        (a + 1) + side * (a - 1) * c - t,
    )


CASES = {
    "lowpass": (
        lambda: F.lowpass_biquad(X, FS, 900.0),
        section(900, 0.707, 0, lambda c, al, a: ((1 - c) / 2, 1 - c, (1 - c) / 2)),
    ),
    "highpass": (
        lambda: F.highpass_biquad(X, FS, 900.0, 2.0),
        section(900, 2, 0, lambda c, al, a: ((1 + c) / 2, -1 - c, (1 + c) / 2)),
    ),
    "allpass": (
        lambda: F.allpass_biquad(X, FS, 900.0),
        section(900, 0.707, 0, lambda c, al, a: (1 - al, -2 * c, 1 + al)),
    ),
    "bandpass": (lambda: F.bandpass_biquad(X, FS, 900.0, 3.0), section(900, 3, 0, lambda c, al, a: (al, 0, -al))),
    "bandpass of constant skirt gain": (
        lambda: F.bandpass_biquad(X, FS, 900.0, 3.0, True),
        section(900, 3, 0, lambda c, al, a: (3 * al, 0, -3 * al)),
    ),
    "bandreject": (lambda: F.bandreject_biquad(X, FS, 900.0), section(900, 0.707, 0, lambda c, al, a: (1, -2 * c, 1))),
    "equalizer": (
        lambda: F.equalizer_biquad(X, FS, 900.0, 6.0),
        section(
            900,
            0.707,
            6,
            lambda c, al, a: (1 + al * a, -2 * c, 1 - al * a),
            lambda c, al, a: (1 + al / a, -2 * c, 1 - al / a),
        ),
    ),
    "bass": (lambda: F.bass_biquad(X, FS, 6.0), section(100, 0.707, 6, bass_numerator, bass_denominator)),
    "treble": (
        lambda: F.treble_biquad(X, FS, -6.0),
        section(3000, 0.707, -6, lambda *v: bass_numerator(*v, -1), lambda *v: bass_denominator(*v, -1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_biquads_are_the_cookbooks(name):
    run, (b, a) = CASES[name]
    assert deviation(run(), signal.lfilter(b, a, X.numpy())) < 1e-12


def test_lfilter_takes_the_denominator_first_and_clamps():
    b, a = torch.tensor([8.0, 0.0]), torch.tensor([1.0, -0.5])
    expected = signal.lfilter(b, a, X.numpy())
    assert deviation(F.lfilter(X, a, b, clamp=False), expected) < 1e-12
    assert torch.equal(F.lfilter(X, a, b), F.lfilter(X, a, b, clamp=False).clamp(-1, 1))
    assert float(F.biquad(X, 100.0, 0.0, 0.0, 1.0, 0.0, 0.0).abs().max()) == 1.0


def test_batching_gives_each_filter_a_channel_or_the_whole():
    b, a = torch.tensor([[0.5, 0.1], [0.2, 0.3]]), torch.tensor([[1.0, -0.5], [1.0, 0.5]])
    by_channel, all_of_each = F.lfilter(X, a, b), F.lfilter(X, a, b, batching=False)
    assert all_of_each.shape == (2, 2, 300)
    for i in range(2):
        assert deviation(by_channel[i], signal.lfilter(b[i], a[i], X[i].numpy())) < 1e-12
        assert deviation(all_of_each[:, i], signal.lfilter(b[i], a[i], X.numpy())) < 1e-12


def test_filtfilt_starts_from_rest_both_times():
    b, a = torch.tensor([0.5, 0.1, 0.0]), torch.tensor([1.0, -0.5, 0.2])
    expected = signal.lfilter(b, a, signal.lfilter(b, a, X.numpy())[:, ::-1])[:, ::-1]
    assert deviation(F.filtfilt(X, a, b), expected) < 1e-12


def test_emphasis_and_its_inverse():
    assert torch.allclose(F.preemphasis(X)[:, 1:], X[:, 1:] - 0.97 * X[:, :-1], atol=1e-15)
    assert torch.allclose(F.deemphasis(F.preemphasis(X, 0.9), 0.9), X, atol=1e-14)
