"""IIR designs against SciPy's, and the physics behind them."""

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx.design import butterworth, chebyshev1
from torchfx.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize("side", ["lowpass", "highpass"])
@pytest.mark.parametrize("order", range(1, 13))
def test_designs_are_scipys(order, side):
    for cutoff, fs in ((20, 48000), (1000, 44100), (0.45 * 96000, 96000)):
        expected = signal.butter(order, cutoff, side, fs=fs, output="sos")
        assert np.array_equal(butterworth(cutoff, order, fs, side).numpy(), expected)
        expected = signal.cheby1(order, 0.3, cutoff, side, fs=fs, output="sos")
        assert np.array_equal(chebyshev1(cutoff, order, 0.3, fs, side).numpy(), expected)


@pytest.mark.parametrize("order", [1, 4, 7])
def test_butterworth_has_3_db_at_the_cutoff(order):
    for side in ("lowpass", "highpass"):
        sections = butterworth(3000, order, 48000, side).numpy()
        h = np.prod([signal.freqz(section[:3], section[3:], [3000], fs=48000)[1] for section in sections])
        assert 20 * np.log10(abs(h)) == pytest.approx(-20 * np.log10(2) / 2, abs=1e-9)


@pytest.mark.parametrize(
    ("cutoff", "message"),
    [
        (0, r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 0"),
        (-5, "got -5"),
        (24000, r"\(0, 24000\) Hz, got 24000"),
        (30000, r"\(0, 24000\) Hz, got 30000"),
        (float("nan"), "cutoff must be finite, got nan Hz"),
        (float("inf"), "cutoff must be finite, got inf Hz"),
    ],
)
def test_bad_cutoffs_raise(cutoff, message):
    with pytest.raises(ArgumentError, match=message):
        butterworth(cutoff, 2, 48000, "lowpass")
    with pytest.raises(ArgumentError, match=message):
        chebyshev1(cutoff, 2, 0.5, 48000, "lowpass")


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (0, ArgumentError),
        (-1, ArgumentError),
        (2.5, ArgumentTypeError),
        (True, ArgumentTypeError),
        ("2", ArgumentTypeError),
    ],
)
def test_bad_orders_raise(order, error):
    with pytest.raises(error, match="order must be a whole number >= 1"):
        butterworth(1000, order, 48000, "lowpass")


def test_bad_ripples_and_rates_raise():
    with pytest.raises(ArgumentError, match=r"ripple must lie in \(0, 3000\] dB, got 0"):
        chebyshev1(1000, 2, 0, 48000, "lowpass")
    with pytest.raises(ArgumentError, match=r"fs must lie in \(0, inf\) Hz, got -1"):
        butterworth(1000, 2, -1, "lowpass")
    with pytest.raises(ArgumentError, match=r"ripple must lie in \(0, 3000\] dB, got 4000"):
        chebyshev1(1000, 2, 4000, 48000, "lowpass")
    with pytest.raises(ArgumentError, match="ripple cannot be learned here"):
        chebyshev1(1000, 2, torch.tensor(1.0, requires_grad=True), 48000, "lowpass")
    with pytest.raises(ArgumentTypeError, match="cutoff must be a number in Hz, got array"):
        butterworth(np.array(1j), 2, 48000, "lowpass")
    with pytest.raises(ArgumentTypeError, match="cutoff must be a number in Hz, got '80'"):
        butterworth("80", 2, 48000, "lowpass")


def test_other_sides_raise():
    for btype in ("high", "bandpass", None):
        with pytest.raises(ArgumentError, match=f"btype must be one of lowpass, highpass, got {btype!r}"):
            butterworth(torch.tensor(1000.0, requires_grad=True), 2, 48000, btype)


def test_a_filter_float64_cannot_hold_raises():
    with pytest.raises(ArgumentError, match="float64 cannot hold"):
        butterworth(1e-12, 4, 192000, "lowpass")
