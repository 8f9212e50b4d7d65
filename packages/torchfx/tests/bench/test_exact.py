"""Signals, and the truth that contenders are compared with."""

import numpy as np
import pytest
from scipy import signal

from bench import chains, exact, signals


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(exact, "BLOCK", 700)
    monkeypatch.setattr(signals, "BLOCK", 300)


def test_noise_is_float32_with_a_peak_of_one_per_channel(tmp_path):
    x = signals.noise(3, 1000)
    assert x.dtype == np.float32
    assert np.abs(x).max(axis=1).tolist() == [1, 1, 1]
    assert 0.2 < x.std() < 0.4
    assert not np.array_equal(x[0], x[1])
    assert np.array_equal(x, signals.noise(3, 1000))
    signals.write_noise(tmp_path / "x.npy", 3, 1000)
    assert np.array_equal(np.load(tmp_path / "x.npy"), x)


@pytest.mark.parametrize("chain", [chains.IIR, chains.FIR, chains.API], ids=["iir", "fir", "api"])
def test_blocks_of_the_truth_make_up_scipys_whole(chain):
    x = signals.noise(2, 2000)
    y = np.zeros_like(x, np.float64)
    for channel, start, block in exact.exact_blocks(chain, x):
        y[channel, start : start + len(block)] = block
    whole = x.astype(np.float64)
    for each in chain.filters:
        whole = signal.lfilter(*each.coefficients("ba", chain.fs), whole)
    assert np.abs(y - whole).max() < 1e-11 * np.abs(whole).max()
    assert exact.deviation(chain, x, lambda channel, start, stop: whole[channel, start:stop]) < 1e-11


def test_deviation_is_relative_to_the_peak_and_sees_every_sample():
    x = signals.noise(2, 2000)
    y = signal.sosfilt(chains.IIR.sos(), x)
    wrong = y.copy()
    wrong[1, -1] += 0.01 * np.abs(y).max()
    assert exact.deviation(chains.IIR, x, lambda c, a, b: wrong[c, a:b]) == pytest.approx(0.01)
    wrong[0, 0] = np.nan
    assert exact.deviation(chains.IIR, x, lambda c, a, b: wrong[c, a:b]) == float("inf")
    assert exact.deviation(chains.IIR, x, lambda c, a, b: y[c, a : b - 1]) == float("inf")


def test_the_chains_are_the_documents():
    assert str(chains.IIR) == (
        "HiButterworth(1000, order 2) | LoButterworth(5000, order 2) | HiChebyshev1(1500, order 2) | "
        "LoChebyshev1(1800, order 2) at 44100 Hz"
    )
    assert chains.FIR.taps().size == 101 + 102 + 103 + 104 + 105 - 4
    assert [each.cutoff for each in chains.API.filters] == [20, 60, 65, 5000, 4900, 4850]
