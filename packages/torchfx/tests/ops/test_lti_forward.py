"""`torchfx_ext::lti_forward` against SciPy in long double, and against the two operators it stands for."""

from functools import lru_cache

import numpy as np
import pytest
import torch
from scipy import signal

from operators import forms
from oracle import LENGTHS, bound, deviation, exact_fir, exact_sos
from torchfx.errors import ArgumentError

SOS = signal.cheby1(5, 0.5, 3000, fs=48000, output="sos")
FORMS = forms("lti_forward")


@lru_cache(maxsize=1)
def filtered(length, taps, dtype):
    """Return taps, and signals with what they are behind both; the forms are tested one after the other."""
    rng = np.random.default_rng(0)
    b = rng.standard_normal(taps)
    signals = [
        torch.from_numpy(rng.standard_normal((channels, length))).to(dtype)[..., :: 2 if length < 2000 else 1]
        for channels in (1, 3, 17)
    ]
    return b, [(x, exact_sos(SOS, exact_fir(b, x.numpy()))) for x in signals]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("taps", [1, 31, 300])
@pytest.mark.parametrize("length", [*LENGTHS, 70_000])
def test_equals_response_then_cascade(form, length, taps, dtype):
    b, signals = filtered(length, taps, dtype)
    for x, expected in signals:
        y, _, _ = form(x, torch.from_numpy(b), torch.from_numpy(SOS))
        assert deviation(y, expected) < bound(dtype)


@pytest.mark.parametrize("form", FORMS)
def test_bad_coefficients_raise(form):
    x, b, sos = torch.zeros(2, 10), torch.ones(3).double(), torch.from_numpy(SOS.copy())
    with pytest.raises(ArgumentError, match="taps must be finite"):
        form(x, b * float("nan"), sos)
    sos[1, 5] = 1.0
    with pytest.raises(ArgumentError, match="section 1 is unstable"):
        form(x, b, sos)
