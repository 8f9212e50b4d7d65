"""FIR designs against SciPy's, and what they refuse."""

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx import design, spec
from torchfx import filter as filters
from torchfx.design.fir_bands import (
    frequency_sampled_taps,
    hilbert_taps,
    least_squares_taps,
    remez_taps,
    savitzky_golay_taps,
)
from torchfx.errors import ArgumentError

FS = 44_100


def far_apart(taps, expected):
    assert taps.dtype == torch.float64
    assert taps.shape == expected.shape
    return np.abs(taps.numpy() - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(
    ("cutoff", "transition", "attenuation", "pass_zero"),
    [(1000, 200, 80, True), (1000, 500, 30, False), ([300, 3400], 100, 55, False), (20, 20, 8, True)],
)
def test_kaiser_is_scipy_s(cutoff, transition, attenuation, pass_zero):
    count, beta = signal.kaiserord(attenuation, transition / (FS / 2))
    expected = signal.firwin(count | 1, cutoff, window=("kaiser", beta), pass_zero=pass_zero, fs=FS)
    assert far_apart(design.kaiser_taps(cutoff, transition, attenuation, FS, pass_zero), expected) < 1e-12


def test_kaiser_keeps_what_is_specified():
    taps = design.kaiser_taps(5000, 1000, 60, FS).numpy()
    frequencies, response = signal.freqz(taps, worN=1 << 14, fs=FS)
    gain = np.abs(response)
    assert np.abs(gain[frequencies < 4500] - 1).max() < 1.2e-3
    assert gain[frequencies > 5500].max() < 1.2e-3


@pytest.mark.parametrize(("cutoff", "count"), [(1000, 101), ([300, 3400], 257), (8000, 2), (5000, 1)])
def test_minimum_phase_is_scipy_s_with_the_same_magnitude(cutoff, count):
    band = not isinstance(cutoff, list)
    linear = design.fir_taps(cutoff, count, FS, pass_zero=band).numpy()
    taps = design.minimum_phase_taps(cutoff, count, FS, pass_zero=band)
    if count > 1:
        assert far_apart(taps, signal.minimum_phase(np.convolve(linear, linear))) < 1e-12
    gains = [np.abs(signal.freqz(each, worN=512)[1]) for each in (taps.numpy(), linear)]
    assert np.abs(gains[0] - gains[1]).max() < 0.02
    assert np.abs(np.roots(taps.numpy())).max(initial=0) < 1.03


@pytest.mark.parametrize(
    ("frequencies", "gains", "count", "window"),
    [([1000, 4000], [1, 1, 0.25, 0], 64, "hamming"), (5000, [0, 1, 0.5], 151, ("kaiser", 6.0))],
)
def test_frequency_sampling_is_firwin2(frequencies, gains, count, window):
    expected = signal.firwin2(count, [0, *np.atleast_1d(frequencies), FS / 2], gains, window=window, fs=FS)
    assert far_apart(frequency_sampled_taps(frequencies, gains, count, FS, window), expected) < 1e-12


@pytest.mark.parametrize(
    ("edges", "gains", "weights", "count"),
    [([3000, 4000], [1, 0], 1.0, 101), ([1000, 2000, 8000, 9000], [0, 1, 0.5], [10, 1, 2], 75)],
)
def test_bands_are_firls_and_remez(edges, gains, weights, count):
    bands, each = [0, *edges, FS / 2], np.broadcast_to(weights, len(gains))
    expected = signal.firls(count, bands, np.repeat(gains, 2), weight=each, fs=FS)
    assert far_apart(least_squares_taps(edges, gains, count, FS, weights), expected) < 1e-12
    expected = signal.remez(count, bands, gains, weight=each, fs=FS)
    assert far_apart(remez_taps(edges, gains, count, FS, weights), expected) < 1e-12


@pytest.mark.parametrize(
    "whole", [[0, 3000, 4000, 22_050], [500.0, 3000.0, 4000.0, 20_000.0]], ids=["to the ends", "within"]
)
def test_bands_take_both_edges_of_each_as_scipy_does(whole):
    for gains in ([1, 0], [1, 0.5, 0.25, 0]):
        expected = signal.firls(101, whole, np.repeat(gains, 2) if len(gains) == 2 else gains, weight=[1, 3], fs=FS)
        assert far_apart(least_squares_taps(whole, gains, 101, FS, [1, 3]), expected) < 1e-12
    expected = signal.remez(101, whole, [1, 0], weight=[1, 3], fs=FS)
    assert far_apart(remez_taps(whole, [1, 0], 101, FS, [1, 3]), expected) < 1e-12


@pytest.mark.parametrize(
    "whole", [[0.0, 1000.0, 4000.0, FS / 2], [0.0, 2000.0, 2000.0, FS / 2]], ids=["lines", "a step"]
)
def test_frequency_sampling_takes_the_whole_list_as_scipy_does(whole):
    expected = signal.firwin2(64, whole, [1, 1, 0.25, 0], fs=FS)
    assert far_apart(frequency_sampled_taps(whole, [1, 1, 0.25, 0], 64, FS), expected) < 1e-12


def test_whole_lists_follow_the_rate_of_the_signal():
    whole = [0, 3000, 4000, FS / 2]
    for made in (filters.Remez, filters.LeastSquaresFIR):
        assert torch.equal(made(whole, [1, 0]).design(FS), made([3000, 4000], [1, 0]).design(FS))
    module = filters.FrequencySampledFIR(whole, [1, 1, 0, 0])
    assert torch.equal(module.design(FS), filters.FrequencySampledFIR([3000, 4000], [1, 1, 0, 0]).design(FS))
    with pytest.raises(ArgumentError, match=r"frequencies that begin at 0 must end at fs/2 = 24000 Hz, got \[0, 3000"):
        module.design(48_000)
    assert str(spec.build("remez:[0,3kHz,4kHz,8kHz],gains=[1,0]")).startswith("Remez(edges=[0, 3000, 4000, 8000]")


@pytest.mark.parametrize(("length", "order", "deriv"), [(11, 2, 0), (5, 4, 1), (1, 0, 0), (12, 3, 2), (5, 2, 3)])
def test_polynomials_are_savgol_coeffs(length, order, deriv):
    expected = signal.savgol_coeffs(length, order, deriv)
    assert np.abs(savitzky_golay_taps(length, order, deriv).numpy() - expected).max() < 1e-12


@pytest.mark.parametrize("count", [2, 31, 64, 65])
def test_hilbert_shifts_by_90_degrees(count):
    taps = hilbert_taps(count).numpy()
    assert np.abs(taps + taps[::-1]).max() < 1e-15
    assert np.all(taps[count // 2 + 1 :] >= 0)
    if count > 60:
        frequencies = np.linspace(0.1, 0.9, 50) * np.pi
        response = signal.freqz(taps, worN=frequencies)[1] * np.exp(1j * frequencies * (count - 1) / 2)
        assert np.abs(response + 1j).max() < 5e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: design.kaiser_taps(1000, 1e-3, 80, FS),
            "transition must be wider than 0.221 Hz .* got 0.001",
        ),
        (lambda: frequency_sampled_taps(1000, [1, 0], 11, FS), "gains must hold 3 values, .* got 2"),
        (lambda: frequency_sampled_taps(1000, [1, 0, 1], 10, FS), "num_taps must be odd for a filter that passes fs/2"),
        (lambda: least_squares_taps([1, 2], [1, 0], 10, FS), "num_taps must be odd, got 10"),
        (
            lambda: least_squares_taps([1, 2, 3], [1, 0], 11, FS),
            r"edges must hold 2 .* 2 for 2 gains, or 2 for each band, 4, got \[1, 2, 3\]",
        ),
        (lambda: remez_taps([0, 1, 2, 22_051], [1, 0], 11, FS), r"edges must lie in \[0, fs/2\] = \[0, 22050\] Hz"),
        (lambda: frequency_sampled_taps([0, 1, 2], [1, 1, 0], 11, FS), "frequencies that begin at 0 must end at fs/2"),
        (lambda: design.fir_taps([0, 1000], 11, FS), r"cutoff must lie in \(0, fs/2\) = \(0, 22050\) Hz, got 0"),
        (lambda: least_squares_taps([1, 2], [1, -1], 11, FS), r"gains must lie in \[0, inf\), got -1"),
        (lambda: remez_taps([1, 2], [1, 0], 11, FS, [1, 2, 3]), "weights must hold one value, .* got 3"),
        (lambda: remez_taps([1, 2], [1, 0], 2, FS), "num_taps must be a whole number >= 3, got 2"),
        (lambda: remez_taps([1, 2], [0, 1], 10, FS), "num_taps must be odd for a filter that passes fs/2, got 10"),
        (lambda: remez_taps([2, 1], [0, 1], 11, FS), r"edges must be one or more ascending frequencies"),
        (lambda: savitzky_golay_taps(5, 5), "polyorder must be less than window_length = 5, got 5"),
        (lambda: hilbert_taps(5, "nothing"), "hilbert_taps.* has no solution: (Unknown|Invalid) window"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
