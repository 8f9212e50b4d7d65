"""filtfilt and sosfiltfilt against SciPy's."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck

from oracle import bound, deviation, exact_sos
from torchfx import functional as F
from torchfx.errors import ArgumentError

DESIGNS = [
    signal.butter(1, 0.1, output="ba"),
    signal.butter(2, 0.5),
    signal.ellip(5, 0.5, 40, 0.3),
    ([0.5, 0.5], [1.0]),
]
SOS = signal.butter(4, 0.1, output="sos")


@pytest.mark.parametrize(
    ("padtype", "padlen"), [("odd", None), ("even", 5), ("constant", 11), ("odd", 0), (None, None)]
)
def test_filtfilt_is_scipys(rng, padtype, padlen):
    x = rng.standard_normal((2, 50))
    for b, a in DESIGNS:
        expected = signal.filtfilt(b, a, x, padtype=padtype, padlen=padlen)
        assert deviation(F.filtfilt(b, a, torch.from_numpy(x), padtype=padtype, padlen=padlen), expected) < 1e-12
        turned = F.filtfilt(b, a, torch.from_numpy(x).float().T, axis=0, padtype=padtype, padlen=padlen)
        assert deviation(turned.T, signal.filtfilt(b, a, np.float32(x), padtype=padtype, padlen=padlen)) < 2e-7


@pytest.mark.parametrize("order", [1, 4, 7])
@pytest.mark.parametrize(("padtype", "padlen"), [("odd", None), ("even", None), ("constant", 3), (None, None)])
def test_sosfiltfilt_is_scipys(rng, order, padtype, padlen):
    x, sos = rng.standard_normal((2, 3, 60)), signal.butter(order, 0.2, output="sos")
    expected = signal.sosfiltfilt(sos, x, padtype=padtype, padlen=padlen)
    assert deviation(F.sosfiltfilt(sos, torch.from_numpy(x), padtype=padtype, padlen=padlen), expected) < 1e-12
    turned = F.sosfiltfilt(torch.tensor(sos), torch.from_numpy(x).movedim(-1, 0), 0, padtype, padlen)
    assert deviation(turned.movedim(0, -1), expected) < 1e-12


def exactly_both_ways(sos, x, edge):
    """Return what sosfiltfilt is, in long double: SciPy's own loses up to ten digits on low filters."""
    x, rows = np.longdouble(x), np.longdouble(sos)
    first, last = 2 * x[..., :1] - x[..., edge:0:-1], 2 * x[..., -1:] - x[..., -2 : -edge - 2 : -1]
    wide, level, settled = np.concatenate([first, x, last], axis=-1), np.longdouble(1), []
    for b0, b1, b2, a0, a1, a2 in rows:
        gain = (b0 + b1 + b2) / (a0 + a1 + a2)
        settled.append([level * (b1 + b2 - (a1 + a2) * gain), level * (b2 - a2 * gain)])
        level *= gain
    for _ in range(2):
        start = np.array(settled).reshape(-1, *[1] * (x.ndim - 1), 2) * wide[..., :1]
        wide = exact_sos(rows, wide, start)[0][..., ::-1]
    return wide[..., edge : edge + x.shape[-1]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("order", "cutoff"), [(2, 20), (12, 20), (5, 1000), (4, 20_000)])
@pytest.mark.parametrize("shape", [(25_000,), (3, 1025), (9, 90), (2, 17, 60)])
def test_low_filters_and_long_signals_are_exact(rng, shape, order, cutoff, dtype):
    """Long signals of few channels are cut into stretches, many channels are run in groups."""
    sos = signal.butter(order, cutoff, fs=48_000, output="sos")
    x = torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    edge = 3 * (2 * len(sos) + 1 - (order % 2))
    found = F.sosfiltfilt(sos, x)
    assert found.dtype == dtype
    assert deviation(found, exactly_both_ways(sos, x.numpy(), edge)) < (2e-7 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(30_000,), (2, 9000), (17, 300)])
def test_filtfilt_of_long_signals_and_many_channels_is_scipys(rng, shape, dtype):
    x = torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    for b, a in (signal.butter(4, 0.05), signal.ellip(9, 0.5, 60, 0.4), signal.butter(3, 0.001)):
        found = F.filtfilt(b, a, x, padlen=40)
        assert found.dtype == dtype
        limit = 1e-8 if dtype == torch.float64 and a.sum() < 1e-6 else bound(dtype)  # SciPy's own error
        assert deviation(found, signal.filtfilt(b, a, x.double().numpy(), padlen=40)) < limit


@pytest.mark.parametrize("call", [lambda x: F.sosfiltfilt(SOS, x), lambda x: F.filtfilt(*signal.butter(4, 0.1), x)])
@pytest.mark.parametrize("where", [0, 3, 12_000, -1])
def test_a_channel_with_a_nan_is_nan_and_others_are_not(rng, call, where):
    x = torch.from_numpy(rng.standard_normal((2, 20_000)))
    x[1, where] = float("nan")
    y = call(x)
    assert y[1].isnan().all()
    assert torch.allclose(y[0], call(x[:1])[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("irlen", [None, 9, 25, 1000])
def test_filtfilt_from_the_best_states_is_scipys(rng, irlen):
    """With an `irlen` of less than half the signal, states are solved for on the signal's ends alone."""
    x = rng.standard_normal((3, 2, 60))
    for b, a in [*DESIGNS, ([0.5], [2.0])]:
        expected = signal.filtfilt(b, a, x, method="gust", irlen=irlen)
        assert deviation(F.filtfilt(b, a, torch.from_numpy(x), method="gust", irlen=irlen), expected) < 1e-11
        turned = F.filtfilt(b, a, torch.from_numpy(x[0]).T, 0, method="gust", irlen=irlen)
        assert deviation(turned.T, expected[0]) < 1e-11
    b, a = (torch.tensor(each, requires_grad=True) for each in signal.butter(2, 0.4))
    short = torch.from_numpy(x[0, :1, :7].copy()).requires_grad_()
    assert gradcheck(lambda b, a, x: F.filtfilt(b, a, x, method="gust"), (b, a, short))


def test_settled_states_are_scipys():
    for b, a in DESIGNS:
        assert np.allclose(F.lfilter_zi(b, a), signal.lfilter_zi(b, a), rtol=1e-9, atol=1e-12)
    sos = signal.ellip(7, 0.5, 40, 0.3, output="sos")
    assert np.allclose(F.sosfilt_zi(sos), signal.sosfilt_zi(sos), rtol=1e-9, atol=1e-12)


def test_a_filter_per_example_and_gradients(rng):
    edges = (0.2, 0.4)
    x = torch.from_numpy(rng.standard_normal((2, 3, 40)))
    sos = torch.tensor(np.array([signal.butter(3, edge, output="sos") for edge in edges]))[:, None]
    y = F.sosfiltfilt(sos, x)
    for i in range(2):
        assert deviation(y[i], signal.sosfiltfilt(sos[i, 0].numpy(), x[i].numpy())) < 1e-12
    b, a = (torch.tensor(each, requires_grad=True) for each in signal.butter(3, 0.4))
    short = x[0, :1, :6].clone().requires_grad_()
    assert gradcheck(lambda b, a, x: F.filtfilt(b, a, x, padlen=4), (b, a, short))
    assert gradcheck(lambda sos, x: F.sosfiltfilt(sos, x, padlen=4), (sos[0, 0].clone().requires_grad_(), short))


def test_vectorised_and_without_values_it_does_the_same(rng):
    x = torch.from_numpy(rng.standard_normal((2, 3, 60)))
    b, a = (torch.tensor(each) for each in signal.butter(4, 0.2))
    for function, given in ((F.sosfiltfilt, (torch.tensor(SOS),)), (F.filtfilt, (b, a))):
        expected = function(*given, x)
        assert torch.allclose(torch.func.vmap(function, (*(None for _ in given), 0))(*given, x), expected, atol=1e-12)
        pairs = [torch.stack([each, each]) for each in given]
        found = torch.func.vmap(function, (*(0 for _ in given), None))(*pairs, x)
        assert torch.allclose(found[1], expected, atol=1e-12)
        assert function(*given, x.to("meta")).shape == x.shape


def test_zero_phase_is_what_it_says():
    x = torch.zeros(401, dtype=torch.float64)
    x[200] = 1
    y = F.filtfilt(*signal.ellip(3, 0.5, 40, 0.3), x)
    assert torch.allclose(y, y.flip(-1), atol=1e-12)


X = torch.zeros(2, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.filtfilt([1, 1, 1, 1], [1], X), "x must be longer than padlen = 12 samples, got 10"),
        (lambda: F.filtfilt([1], [1, 0.5], X, padlen=10), "x must be longer than padlen = 10 samples, got 10"),
        (lambda: F.filtfilt([1], [1, 0.5], X, padlen=-1), "padlen must be a whole number >= 0, got -1"),
        (
            lambda: F.filtfilt([1], [1, 0.5], X, padtype="zero"),
            "padtype must be one of odd, even, constant or None, got 'zero'",
        ),
        (
            lambda: F.filtfilt([1], [1, -1], X, padlen=2),
            "a must have no pole at 0 Hz, got coefficients that sum to zero",
        ),
        (lambda: F.filtfilt([1], [1, 0.5, 0.25, 0.25, -2], X, padlen=2), "a must have no pole at 0 Hz"),
        (lambda: F.filtfilt([1], [1, 0.5], X, method="best"), "method must be pad or gust, got 'best'"),
        (lambda: F.filtfilt([1], [1, 0.5], X, method="gust", irlen=0), "irlen must be a whole number >= 1, got 0"),
        (lambda: F.sosfiltfilt([[1, 0, 0, 1, -2, 1]], X), "section 0 is unstable"),
        (lambda: F.sosfiltfilt([[1, 0, 0, 1, 0.5]], X), r"sos must have the shape .*, 6\), got \(1, 5\)"),
        (
            lambda: F.sosfiltfilt([[1, 0.5, 0.2, 1, 0.5, 0.1]] * 2, X),
            "x must be longer than padlen = 15 samples, got 10",
        ),
    ],
)
def test_bad_arguments_raise(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
