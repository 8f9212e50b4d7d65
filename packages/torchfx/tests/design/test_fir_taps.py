"""Window-method designs against SciPy's."""

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx.design import fir_taps
from torchfx.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize(
    ("cutoff", "taps", "window", "pass_zero"),
    [
        (1000, 101, "hamming", True),
        (1000, 102, "hann", True),
        (5000, 31, ("kaiser", 8.6), False),
        ([300, 3400], 257, "blackman", False),
        ([300, 3400], 257, "hamming", True),
        (20, 1, "hamming", True),
    ],
)
def test_designs_are_scipys(cutoff, taps, window, pass_zero):
    expected = signal.firwin(taps, cutoff, window=window, pass_zero=pass_zero, fs=44100)
    assert np.array_equal(fir_taps(cutoff, taps, 44100, window, pass_zero).numpy(), expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((30000, 101, 44100), ArgumentError, r"\(0, 22050\) Hz, got 30000"),
        (([3400, 300], 101, 44100), ArgumentError, r"ascending frequencies in Hz, got \[3400, 300\]"),
        (([], 101, 44100), ArgumentError, "one or more ascending"),
        (("deep", 101, 44100), ArgumentError, "got 'deep'"),
        ((1000, 0, 44100), ArgumentError, "num_taps must be a whole number >= 1, got 0"),
        (
            (1000, 100, 44100, "hamming", False),
            ArgumentError,
            "num_taps must be odd for a filter that passes fs/2, got 100",
        ),
        (([300, 3400], 100, 44100, "hamming", True), ArgumentError, "num_taps must be odd"),
        (
            (1000, 101, 44100, "hammock"),
            ArgumentError,
            "window must be one that scipy.signal.get_window knows, got 'hammock'",
        ),
        ((1000, 101, 44100, 8.6), ArgumentTypeError, r"window must be a name or a pair \(name, parameter\), got 8.6"),
        ((1000, 101, 44100, ("kaiser",)), ArgumentTypeError, r"pair \(name, parameter\), got \('kaiser',\)"),
        ((1000, 101, 44100, ("kaiser", "x")), ArgumentTypeError, "window's parameter must be a number, got 'x'"),
        ((1000, 101, 44100, "hann", 1), ArgumentTypeError, "pass_zero must be True or False, got 1"),
        ((1000, 101, 44100, "hann", "lows"), ArgumentError, "pass_zero must be one of lowpass, .*, got 'lows'"),
        ((1000, 101, 44100, "hann", "bandpass"), ArgumentError, "cutoff must hold two edges or more for a bandpass"),
        ((1000, 2, 44100, "hann"), ArgumentError, "num_taps must leave the window 'hann' more than zeros, got 2"),
        ((torch.tensor(1000.0, requires_grad=True), 101, 44100), ArgumentError, "cutoff cannot be learned here"),
    ],
)
def test_bad_arguments_raise(arguments, error, message):
    with pytest.raises(error, match=message):
        fir_taps(*arguments)
