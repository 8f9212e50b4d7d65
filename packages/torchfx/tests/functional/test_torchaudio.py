"""torchaudio's names and arguments: order of coefficients, clamping, batching, and its biquads by formula."""

import math

import numpy as np
import pytest
import torch
from scipy import signal, special

import torchfx as fx
from oracle import deviation
from torchfx.errors import ArgumentError, ArgumentTypeError
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
    assert float(F.deemphasis(torch.ones(100)).max()) == 1.0


def test_band_biquad_has_two_poles():
    r, w0 = math.exp(-2 * math.pi * 900 / 2 / FS), 2 * math.pi * 900 / FS
    a = [1.0, -4 * r / (1 + r) * math.cos(w0), r]
    b = math.sqrt(1 - a[1] ** 2 / (4 * r)) * (1 - r)
    assert deviation(F.band_biquad(X, FS, 900.0, 2.0), signal.lfilter([b], a, X.numpy())) < 1e-12
    impulse = torch.zeros(20_000, dtype=torch.float64)
    impulse[0] = 1.0
    assert abs(float(F.band_biquad(impulse, FS, 900.0, 2.0, noise=True).square().sum()) - 1) < 1e-9
    several = F.band_biquad(X, FS, torch.tensor([500.0, 900.0]))
    assert torch.allclose(several[1], F.band_biquad(X[1], FS, 900.0), atol=1e-15)


@pytest.mark.parametrize("fs", [44_100, 48_000, 88_200, 96_000])
def test_riaa_is_the_curve_of_its_time_constants(fs):
    impulse = torch.zeros(4 * fs, dtype=torch.float64)
    impulse[0] = 0.5
    found = 2 * torch.fft.rfft(F.riaa_biquad(impulse, fs)).abs()[[4 * f for f in (30, 100, 1000, 5000, 10_000)]]

    def curve(f):
        s = 2j * math.pi * f
        return abs((1 + 318e-6 * s) / ((1 + 3180e-6 * s) * (1 + 75e-6 * s)))

    wanted = torch.tensor([curve(f) / curve(1000) for f in (30, 100, 1000, 5000, 10_000)])
    assert (20 * torch.log10(found / wanted)).abs().max() < 0.5
    assert abs(float(found[2]) - 1) < 1e-6


@pytest.mark.parametrize("fs", [44_100, 48_000])
def test_deemphasis_of_discs_is_the_curve_of_its_time_constants(fs):
    impulse = torch.zeros(fs, dtype=torch.float64)
    impulse[0] = 1.0
    places = [100, 1000, 5000, 10_000]
    found = torch.fft.rfft(F.deemph_biquad(impulse, fs)).abs()[places]
    wanted = torch.tensor([abs((1 + 2j * math.pi * f * 15e-6) / (1 + 2j * math.pi * f * 50e-6)) for f in places])
    assert (20 * torch.log10(found / wanted)).abs().max() < 0.1


def test_rates_that_have_no_curve_are_said():
    with pytest.raises(ArgumentError, match="sample_rate must be one of 44100, 48000 Hz, got 16000 Hz"):
        F.deemph_biquad(X, 16_000)
    with pytest.raises(ArgumentError, match="sample_rate must be one of 44100, 48000, 88200, 96000 Hz"):
        F.riaa_biquad(X, 16_000)


# --- convolution, noise, rates, loudness ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_is_scipys(mode):
    kernel = X[:, :31].flip(-1)
    expected = np.stack([signal.convolve(x, k, mode) for x, k in zip(X.numpy(), kernel.numpy(), strict=True)])
    assert deviation(F.convolve(X, kernel, mode), expected) < 1e-12


def test_noise_is_added_at_each_signals_own_ratio():
    x, noise = X.expand(3, 2, 300), X.flip(-1).expand(3, 2, 300)
    snr = torch.tensor([[-3.0, 0.0], [10.0, 20.0], [40.0, 60.0]])
    added = F.add_noise(x, noise, snr) - x
    found = 10 * torch.log10(x.square().sum(-1) / added.square().sum(-1))
    assert torch.allclose(found, snr.double(), atol=1e-6)
    lengths = torch.tensor([[300, 10], [50, 200], [1, 300]])
    added = F.add_noise(x, noise, snr, lengths) - x
    heard = torch.arange(300) < lengths[..., None]
    ratio = (x * heard).square().sum(-1) / (added * heard).square().sum(-1)
    assert torch.allclose(10 * torch.log10(ratio), snr.double(), atol=1e-6)
    silence = torch.zeros(2, 300)
    assert torch.equal(F.add_noise(silence, X.float(), torch.zeros(2)), silence)
    assert torch.equal(F.add_noise(X.float(), silence, torch.zeros(2)), X.float())
    with pytest.raises(ArgumentError, match="waveform, noise and snr must have the shapes"):
        F.add_noise(X, X, torch.tensor(3.0))


def resampled(x, before, after, zeros, rolloff, beta):
    """The sum that defines it, at each output's own time."""
    common = math.gcd(before, after)
    before, after = before // common, after // common
    lower = min(before, after) * rolloff
    count = -(-x.shape[-1] * after // before)
    t = (np.arange(x.shape[-1])[None] / before - np.arange(count)[:, None] / after) * lower
    inside = np.clip(t / zeros, -1, 1)
    if beta is None:
        window = np.cos(np.pi / 2 * inside) ** 2
    else:
        window = special.i0(beta * np.sqrt(1 - inside**2)) / special.i0(beta) * (abs(inside) < 1)
    return x @ (np.sinc(t) * window * (lower / before)).T


@pytest.mark.parametrize(("before", "after"), [(44_100, 48_000), (48_000, 16_000), (7, 5), (8000, 8001), (3, 3)])
@pytest.mark.parametrize(
    ("zeros", "rolloff", "method", "beta"),
    [(6, 0.99, "sinc_interp_hann", None), (16, 0.9, "sinc_interp_kaiser", None), (64, 0.95, "sinc_interp_kaiser", 8.0)],
)
def test_resampling_is_the_windowed_sinc(before, after, zeros, rolloff, method, beta):
    for x in (X, X[:, :1], X[:0], X.T.contiguous().T):
        y = F.resample(x, before, after, zeros, rolloff, method, beta)
        shape = None if method == "sinc_interp_hann" else beta or 14.769656459379492
        expected = x.numpy() if before == after else resampled(x.numpy(), before, after, zeros, rolloff, shape)
        assert y.shape == expected.shape
        assert np.allclose(y, expected, rtol=0, atol=1e-12)
    assert F.resample(X.float(), 3, 2).dtype == torch.float32


def test_speed_resamples_and_scales_the_lengths():
    y, lengths = F.speed(X, 16_000, 1.25, torch.tensor([300, 7]))
    assert torch.equal(y, F.resample(X, 5, 4))
    assert lengths.tolist() == [240, 6]
    assert F.speed(X, 16_000, 0.5)[1] is None


def test_loudness_agrees_with_the_meter_of_the_standard():
    fs = 48_000
    tone = 0.1 * torch.sin(2 * math.pi * 997 / fs * torch.arange(5 * fs, dtype=torch.float64))
    signals = torch.stack([torch.stack([tone, tone / 2]), torch.stack([tone * 0.1, tone])])
    signals[:, :, : 2 * fs] *= 0.01  # below the relative gate
    found = F.loudness(signals, fs)
    assert (found - fx.loudness.integrated(signals, fs)).abs().max() < 0.1
    assert F.loudness(signals.float(), fs).dtype == torch.float32
    assert math.isnan(float(F.loudness(torch.zeros(1, fs), fs)))
    for wrong in (torch.zeros(6, fs), torch.zeros(1, 100)):
        with pytest.raises(ArgumentError, match=r"waveform must have the shape \(..., channels <= 5, time >= 19200\)"):
            F.loudness(wrong, fs)


def test_wrong_rates_are_said():
    for call, message in (
        (lambda: F.resample(X, 44_100.5, 3), "orig_freq must be a whole number"),
        (lambda: F.resample(X, 3, 0), "new_freq must be a whole number >= 1"),
        (lambda: F.resample(X, 3, 2, rolloff=1.5), r"rolloff must lie in \(0, 1\], got 1.5"),
        (lambda: F.resample(X, 3, 2, resampling_method="linear"), "resampling_method must be one of"),
        (lambda: F.speed(X, 10, 0.01), "factor must be at least 1 / orig_freq"),
    ):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            call()
