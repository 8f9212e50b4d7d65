"""filtfilt and sosfiltfilt against SciPy's."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck

from oracle import deviation
from torchfx import functional as F
from torchfx.errors import ArgumentError

DESIGNS = [
    signal.butter(1, 0.1, output="ba"),
    signal.butter(2, 0.5),
    signal.ellip(5, 0.5, 40, 0.3),
    ([0.5, 0.5], [1.0]),
]


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
