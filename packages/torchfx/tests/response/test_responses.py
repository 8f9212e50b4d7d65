"""Responses, delays, poles and zeros against SciPy, higher precision, and closed forms."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError

FS = 48_000
FREQS = np.concatenate([[0.0], np.geomspace(5, 23_999, 99), [24_000.0]])
DESIGNS = {
    "lowpass": signal.butter(4, 1000, fs=FS, output="sos"),
    "highpass": signal.cheby1(7, 1, 5000, "highpass", fs=FS, output="sos"),
    "bandpass": signal.ellip(6, 0.5, 60, [800, 3000], "bandpass", fs=FS, output="sos"),
    "bandstop": signal.cheby2(5, 40, [2000, 9000], "bandstop", fs=FS, output="sos"),
    "low": signal.butter(12, 20, fs=FS, output="sos"),
}


def exact(sos):
    """Return response and group delay in long double arithmetic."""
    w = 2 * np.pi * FREQS.astype(np.longdouble) / FS
    v = np.exp(-1j * w.astype(np.clongdouble))
    h, delay = np.ones_like(v), np.zeros_like(w)
    for row in sos.astype(np.longdouble):
        for p, sign in ((row[:3], 1), (row[3:], -1)):
            value = p[0] + p[1] * v + p[2] * v * v
            h = h * value**sign
            with np.errstate(all="ignore"):
                delay = delay + sign * ((p[1] * v + 2 * p[2] * v * v) / value).real
    return h.astype(complex), delay.astype(float)


@pytest.mark.parametrize("name", DESIGNS)
def test_sections_against_scipy_and_long_double(name):
    sos = DESIGNS[name]
    module = fx.filter.SOS(sos)
    h, delay = exact(sos)
    found = module.response(FREQS, FS).numpy()
    assert abs(found - signal.sosfreqz(sos, FREQS, fs=FS)[1]).max() < 1e-10
    assert abs(found - h).max() < 1e-13
    heard = abs(h[1:-1]) > 1e-4  # around zeros on the circle long double cancels, too
    assert abs(module.group_delay(FREQS, FS).numpy() / delay - 1)[1:-1][heard].max() < 1e-10
    if name != "low":  # SciPy drops coefficients as small as this filter's
        zeros, poles, _ = signal.sos2zpk(sos)
        assert abs(np.sort_complex(module.poles().numpy()) - np.sort_complex(poles)).max() < 1e-12
        assert abs(np.sort_complex(module.zeros().numpy()) - np.sort_complex(zeros)).max() < 1e-12


@pytest.mark.many
@pytest.mark.parametrize("seed", range(50))
def test_random_transfer_functions_against_scipy(seed):
    random = np.random.default_rng(seed)
    zeros, poles = (random.uniform(0.1, 0.95, 3) * np.exp(1j * random.uniform(0.1, 3, 3)) for _ in range(2))
    sos = signal.zpk2sos(np.r_[zeros, zeros.conj()], np.r_[poles, poles.conj()], random.uniform(0.1, 2))
    module, ba = fx.filter.SOS(sos), signal.sos2tf(sos)
    assert np.allclose(module.response(FREQS, FS), signal.freqz(*ba, FREQS, fs=FS)[1], rtol=1e-10, atol=1e-10)
    assert np.allclose(module.group_delay(FREQS, FS), signal.group_delay(ba, FREQS, fs=FS)[1], rtol=1e-8, atol=1e-8)


def test_poles_and_zeros_of_a_low_filter():
    """SciPy's prototype moved to 20 Hz: its poles in closed form."""
    module = fx.filter.LoButterworth(20, 12, fs=FS)
    edge = math.tan(math.pi * 20 / FS)
    analogue = edge * signal.buttap(12)[1]
    right = np.sort_complex((1 + analogue) / (1 - analogue))
    assert abs(np.sort_complex(module.poles().numpy()) - right).max() < 1e-12
    assert abs(module.zeros() + 1).max() < 1e-7  # double ones move by the root of a rounding


def test_taps_against_scipy():
    taps = np.random.default_rng(0).standard_normal(50)
    module = fx.filter.FIR(taps)
    assert abs(module.response(FREQS, FS).numpy() - signal.freqz(taps, 1, FREQS, fs=FS)[1]).max() < 1e-10
    assert abs(module.group_delay(FREQS, FS).numpy() - signal.group_delay((taps, 1), FREQS, fs=FS)[1]).max() < 1e-9
    assert abs(np.sort_complex(module.zeros().numpy()) - np.sort_complex(np.roots(taps))).max() < 1e-12
    assert module.poles().shape == (0,)
    assert fx.filter.FIR([0, 0, 1, 0.5]).zeros().tolist() == [-0.5, torch.inf, torch.inf]


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (fx.filter.FIR([0.5, 0.5]), [0.5, 0.5, 0.5]),  # a zero at fs/2
        (fx.filter.FIR([1, -1]), [0.5, 0.5, 0.5]),  # a zero at 0 Hz
        (fx.filter.FIR([1, 0, 1]), [1, 1, 1]),  # zeros at fs/4
        (fx.filter.SOS([[1, -1, 0, 1, 0, 0]]), [0.5, 0.5, 0.5]),
        (fx.filter.SOS([[1, 1, 0, 1, 0, 0]]), [0.5, 0.5, 0.5]),
        (fx.filter.SOS([[1, -2, 1, 1, 0, 0]]), [1, 1, 1]),
        (fx.filter.FIR([1, -1.5, 0.5]), [-0.5, None, None]),  # 1/2 - 0.5 / (1 - 0.5)
        (fx.effect.Gain(1.0) + fx.filter.FIR([0, 0, 1.0]), [1, 1, 1]),
        (fx.effect.Gain(1.0), [0, 0, 0]),
    ],
)
def test_the_group_delay_is_its_limit_where_the_response_is_zero(module, expected):
    found = module.group_delay([0, FS / 4, FS / 2], FS).tolist()
    for value, right in zip(found, expected, strict=True):
        assert right is None or value == pytest.approx(right, abs=1e-6)


def test_linear_phase_delays_by_the_middle():
    module = fx.filter.DesignableFIR(3000, 101)
    assert abs(module.group_delay(FREQS, FS) - 50).max() < 1e-6


def test_chains_multiply_and_sums_add():
    low, high = fx.filter.LoButterworth(1000, 3), fx.filter.HiButterworth(300)
    taps = fx.filter.FIR([0, 0.5, 0.2])
    a, b, c = (each.response(FREQS, FS) for each in (low, high, taps))
    chain = low | (high + taps) | fx.effect.Gain(0.5)
    assert torch.allclose(chain.response(FREQS, FS), a * (b + c) / 2, atol=1e-14)
    d = 1e-3
    inner = FREQS[1:-1]
    step = (chain.response(inner + d, FS) / chain.response(inner - d, FS)).angle()
    numeric = -step / (2 * math.pi * 2 * d / FS)
    assert torch.allclose(chain.group_delay(inner, FS), numeric, rtol=1e-6, atol=1e-4)
    assert chain.poles(FS).shape == (6,)
    with pytest.raises(ArgumentTypeError, match="zeros are computed only for filters in series, got a sum"):
        chain.zeros(FS)


def test_the_response_is_the_spectrum_of_the_impulse_response():
    chain = fx.filter.LoButterworth(4000, 3) | fx.filter.Peaking(2000, 1, -6) | fx.filter.FIR([0.5, 0.2, 0.1])
    h = chain.impulse_response(4096, FS)
    spectrum = torch.fft.rfft(h)
    freqs = np.arange(2049) * FS / 4096
    assert abs(chain.response(freqs, FS) - spectrum).max() < 1e-12
    assert torch.allclose(chain.step_response(4096, FS), h.cumsum(0), atol=1e-12)
    assert torch.allclose(chain.phase_response(freqs, FS)[:-1], spectrum.angle()[:-1], atol=1e-9)  # 0 at fs/2


def test_each_filter_of_a_batch_has_its_own_response():
    cutoffs = torch.tensor([[100.0], [1000.0], [5000.0]])
    together = fx.filter.LoButterworth(cutoffs) | fx.filter.FIR([1, 0.5])
    assert together.response(FREQS, FS).shape == (3, 1, len(FREQS))
    assert together.group_delay(100.0, FS).shape == (3, 1)
    assert together.poles(FS).shape == (3, 1, 2)
    assert together.zeros(FS).shape == (3, 1, 3)
    for i, cutoff in enumerate(cutoffs):
        alone = fx.filter.LoButterworth(float(cutoff)) | fx.filter.FIR([1, 0.5])
        assert torch.allclose(together.response(FREQS, FS)[i, 0], alone.response(FREQS, FS), atol=1e-12)
        assert torch.allclose(together.group_delay(FREQS, FS)[i, 0], alone.group_delay(FREQS, FS), atol=1e-9)
    second = fx.filter.LoButterworth(cutoffs).describe(FS).splitlines()[1]
    assert second.startswith("2 of 3: Low-pass: -3 dB at 1000 Hz;")


def test_responses_are_differentiable():
    q = torch.tensor(0.9, dtype=torch.float64, requires_grad=True)

    def db(q):
        return fx.filter.Peaking(1000, q, 6.0, fs=FS).magnitude_db([500.0, 900.0])

    def delay(q):
        return fx.filter.Peaking(1000, q, 6.0, fs=FS).group_delay([500.0, 900.0])

    assert torch.autograd.gradcheck(db, q)
    assert torch.autograd.gradcheck(delay, q)


def test_misuse_is_told():
    low = fx.filter.LoButterworth(1000)
    for freqs, message in (
        (-1, r"freqs must lie in \[0, fs/2\] = \[0, 24000\] Hz, got -1"),
        ([10, 24_001], "got 24001"),
        (math.nan, "got nan"),
    ):
        with pytest.raises(ArgumentError, match=message):
            low.response(freqs, FS)
    with pytest.raises(ArgumentTypeError, match=r"freqs must be a frequency in Hz or several, \(n,\), got .*\(1, 2\)"):
        low.response([[1, 2]], FS)
    with pytest.raises(SampleRateError, match="LoButterworth has no sample rate"):
        low.response(100)
    with pytest.raises(SampleRateError, match="a response over frequencies needs a sample rate: pass fs="):
        fx.filter.FIR([1.0]).response(100)
    with pytest.raises(ArgumentError, match="num_samples must be a whole number >= 1, got 0"):
        low.impulse_response(0, FS)
    with pytest.raises(ArgumentTypeError, match=r"Normalize \(2nd of 2\) is not linear and time-invariant here"):
        (low | fx.effect.Normalize()).response(100, FS)
    with pytest.raises(ArgumentTypeError, match=r"Tanh.* is not linear and time-invariant here"):
        (low + torch.nn.Tanh()).poles(FS)
