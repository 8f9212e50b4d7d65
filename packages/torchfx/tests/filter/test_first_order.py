"""OnePole, DCBlocker, Preemphasis, Deemphasis and Comb."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import deviation
from torchfx.errors import ArgumentError
from torchfx.filter import Comb, DCBlocker, Deemphasis, OnePole, Preemphasis
from torchfx.rate import sample_rate
from torchfx.realtime import Stream

FS = 48_000


def test_one_pole_settles_as_the_rc_filter():
    for cutoff in (0.01, 1000, 20_000):
        t = torch.arange(1, 101, dtype=torch.float64) / FS
        step = OnePole(cutoff, fs=FS)(torch.ones(100, dtype=torch.float64))
        assert torch.allclose(step, -torch.expm1(-2 * math.pi * cutoff * t), rtol=1e-9, atol=0)


@pytest.mark.parametrize("cutoff", [0.5, 10.0, 5000.0])
def test_dc_blocker_is_a_butterworth_high_pass(cutoff):
    expected = signal.butter(1, cutoff, "highpass", fs=FS, output="sos")
    assert np.allclose(DCBlocker(cutoff, fs=FS).sos, expected, rtol=1e-12, atol=1e-15)
    learned = DCBlocker(torch.tensor(cutoff, requires_grad=True), fs=FS)
    assert np.allclose(learned.sos.detach(), expected, rtol=1e-12, atol=1e-15)


def test_emphasis_is_scipys_filter_and_undone(rng):
    x = rng.standard_normal((2, 500))
    assert deviation(Preemphasis()(torch.from_numpy(x)), signal.lfilter([1, -0.97], 1, x)) < 1e-12
    assert deviation(Deemphasis(0.9)(torch.from_numpy(x)), signal.lfilter([1], [1, -0.9], x)) < 1e-12
    assert np.allclose((Preemphasis(0.9) | Deemphasis(0.9))(torch.from_numpy(x)), x, atol=1e-12)
    assert Preemphasis(0.5).b.tolist() == [1.0, -0.5]


@pytest.mark.parametrize("ftype", ["notch", "peak"])
@pytest.mark.parametrize(("cutoff", "q"), [(50, 30), (12_000, 1.5), (100, 1e5)])
def test_combs_are_scipys(rng, ftype, cutoff, q):
    b, a = signal.iircomb(cutoff, q, ftype, fs=FS, pass_zero=ftype == "peak")
    for length in (1, 959, 4321):
        x = rng.standard_normal((2, length))
        module, exact = Comb(cutoff, q, ftype, fs=FS), signal.lfilter(b, a, x)
        assert deviation(module(torch.from_numpy(x)), exact) < 1e-12
        assert deviation(module(torch.from_numpy(x).float()), exact) < 2e-7


def test_a_comb_streams_in_blocks_of_any_length(rng):
    x, module = torch.from_numpy(rng.standard_normal((2, 3000))), Comb(500, 5, fs=FS)
    stream = Stream(module, FS, 2)
    y = torch.cat([stream.process(block) for block in x.split([1, 95, 96, 97, 1000, 0, 1711], dim=-1)], dim=-1)
    assert torch.allclose(y, module(x), atol=1e-12)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Comb(30_000, fs=FS), r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 30000"),
        (lambda: Comb(100, q=1), r"q must lie in \(1, 1000000\], got 1"),
        (lambda: Comb(100, ftype="both"), "ftype must be one of notch, peak, got 'both'"),
        (lambda: Comb(torch.tensor(100.0, requires_grad=True)), "cutoff cannot be learned here"),
        (lambda: Deemphasis(1.0), r"coeff must lie in \[0, 1\), got 1"),
        (lambda: Preemphasis(-0.1), r"coeff must lie in \[0, 1\], got -0.1"),
        (lambda: DCBlocker(0), r"cutoff must lie in \(0, fs/2\) Hz, got 0"),
        (lambda: OnePole(24_000, fs=FS), r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"),
    ],
)
def test_bad_parameters_raise(made, message):
    with pytest.raises(ArgumentError, match=message):
        made()


def test_a_comb_s_period_has_an_end():
    """It would keep 48e9 samples."""
    with pytest.raises(ArgumentError, match=r"cutoff must be at least fs / 1000000 = 0\.048 Hz, got 1e-06"):
        Comb(1e-6, fs=48_000)
    with sample_rate(48_000), pytest.raises(ArgumentError, match=r"cutoff must be at least fs / 1000000"):
        Comb(0.047)(torch.zeros(10))
    assert Comb(0.048, fs=48_000)(torch.ones(10)).shape == (10,)
