"""HiButterworth, LoButterworth, HiChebyshev1, LoChebyshev1."""

import copy
import inspect

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from oracle import deviation
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

SCIPY = {
    fx.filter.HiButterworth: lambda c, n, fs, out: signal.butter(n, c, "highpass", fs=fs, output=out),
    fx.filter.LoButterworth: lambda c, n, fs, out: signal.butter(n, c, "lowpass", fs=fs, output=out),
    fx.filter.HiChebyshev1: lambda c, n, fs, out: signal.cheby1(n, 0.5, c, "highpass", fs=fs, output=out),
    fx.filter.LoChebyshev1: lambda c, n, fs, out: signal.cheby1(n, 0.5, c, "lowpass", fs=fs, output=out),
}
FILTERS = list(SCIPY)


@pytest.mark.parametrize("cls", FILTERS)
@pytest.mark.parametrize("order", [1, 2, 5, 8])
def test_filters_as_scipy_does(rng, cls, order):
    x = rng.standard_normal((2, 3, 4000))
    exact = signal.sosfilt(SCIPY[cls](700, order, 48000, "sos"), x)
    assert deviation(cls(700, order=order, fs=48000)(torch.from_numpy(x)), exact) < 1e-12
    assert deviation(cls(700, order=order, fs=48000)(torch.from_numpy(x).float()), exact) < 2e-7


@pytest.mark.parametrize("cls", FILTERS)
@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_transfer_function_is_readable(cls, order):
    module = cls(3000, order=order, fs=48000)
    b, a = SCIPY[cls](3000, order, 48000, "ba")
    assert np.allclose(module.b, b, rtol=1e-9, atol=1e-12)
    assert np.allclose(module.a, a, rtol=1e-9, atol=1e-12)
    assert np.allclose(module.sos, SCIPY[cls](3000, order, 48000, "sos"), rtol=1e-12, atol=1e-15)


def test_defaults_are_those_of_the_documents():
    for cls in FILTERS:
        defaults = {
            name: p.default for name, p in inspect.signature(cls).parameters.items() if p.default is not p.empty
        }
        assert defaults["order"] == 2
        assert defaults["fs"] is None
        assert defaults.get("ripple", 0.5) == 0.5


@pytest.mark.parametrize("cls", FILTERS)
def test_calls_leave_no_trace(rng, cls):
    """The same input gives the same output, and neither calls nor pipes write to the module."""
    module = cls(1000)
    before = copy.deepcopy(module.__dict__)
    wave = fx.Wave(rng.standard_normal((2, 500)), 44100)
    first, other = wave | module, fx.Wave(wave.ys, 96000) | module
    assert torch.equal(first.ys, (wave | module).ys)
    assert not torch.equal(first.ys, other.ys)
    assert module.__dict__ == before
    assert module.fs is None


def test_coefficients_can_be_computed_early_or_never():
    with_rate, without = fx.filter.LoButterworth(1000, fs=44100), fx.filter.LoButterworth(1000)
    with_rate.compute_coefficients()
    without.compute_coefficients()
    without.move_coeff("cpu")
    with pytest.raises(SampleRateError, match="LoButterworth has no sample rate"):
        without(torch.zeros(10))
    with pytest.raises(SampleRateError, match="has no sample rate"):
        _ = without.sos
    with fx.sample_rate(44100):
        assert torch.equal(without.sos, with_rate.sos)


def test_reading_coefficients_hands_out_copies():
    module = fx.filter.LoButterworth(1000, fs=44100)
    module.sos.zero_()
    assert np.allclose(module.sos, signal.butter(2, 1000, fs=44100, output="sos"), rtol=1e-12, atol=0)


@pytest.mark.parametrize("change", [lambda m: m.half(), lambda m: m.to(torch.float32), lambda m: m.double().bfloat16()])
def test_a_change_of_dtype_leaves_coefficients_exact(change):
    module = change(fx.filter.LoButterworth(20, order=8, fs=48000))
    assert np.allclose(module.sos, signal.butter(8, 20, fs=48000, output="sos"), rtol=1e-12, atol=0)


def test_coefficients_follow_to():
    module = fx.filter.LoButterworth(1000, fs=44100)
    assert module.device is None
    assert torch.nn.Sequential(module).to("meta")[0].device == torch.device("meta")
    assert module.sos.device == torch.device("meta")
    with pytest.raises(ArgumentError, match="moved to meta but the signal is on cpu"):
        module(torch.zeros(10))
    module.move_coeff("cpu")
    assert module(torch.zeros(10)).device == torch.device("cpu")


@pytest.mark.parametrize("cls", FILTERS)
def test_bad_parameters_raise_at_construction(cls):
    with pytest.raises(ArgumentError, match=r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 30000"):
        cls(30000, fs=48000)
    with pytest.raises(ArgumentError, match=r"cutoff must lie in \(0, fs/2\) Hz, got -1"):
        cls(-1)
    with pytest.raises(ArgumentError, match="order must be a whole number >= 1, got 0"):
        cls(1000, order=0)
    with pytest.raises(ArgumentTypeError, match="order must be a whole number"):
        cls(1000, order=2.0)
    with pytest.raises(SampleRateError, match=r"fs must lie in \(0, inf\) Hz, got 0"):
        cls(1000, fs=0)
    with pytest.raises(ArgumentError, match="fs must be a number in Hz or kHz, got '48x'"):
        cls(1000, fs="48x")
    with pytest.raises(ArgumentTypeError, match="fs must be a sample rate in Hz"):
        cls(1000, fs=[48_000])


def test_a_cutoff_too_high_for_the_wave_raises_at_the_call():
    with pytest.raises(ArgumentError, match=r"\(0, 4000\) Hz, got 5000"):
        fx.Wave(torch.zeros(1, 10), 8000) | fx.filter.LoButterworth(5000)


def test_text_shows_the_parameters():
    assert str(fx.filter.HiButterworth(80.5, order=4)) == "HiButterworth(cutoff=80.5, order=4)"
    assert str(fx.filter.LoChebyshev1(80, fs=44100)) == "LoChebyshev1(cutoff=80, order=2, ripple=0.5, fs=44100)"
