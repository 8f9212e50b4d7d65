"""`torchfx_ext::biquad_forward` against SciPy's lfilter."""

import numpy as np
import pytest
import torch
from scipy import signal

from oracle import LENGTHS, deviation
from torchfx import _ops
from torchfx.errors import ArgumentError, ArgumentTypeError

B, A = signal.cheby1(2, 0.5, 700, "high", fs=48000)


@pytest.mark.parametrize("length", LENGTHS)
def test_equals_lfilter_with_state(rng, length):
    x, zi = rng.standard_normal((2, 3, length)), rng.standard_normal((2, 3, 2))
    y, state = _ops.biquad_forward(torch.from_numpy(x), torch.from_numpy(B), torch.from_numpy(A), torch.from_numpy(zi))
    exact, after = signal.lfilter(*np.longdouble([B, A]), np.longdouble(x), zi=np.longdouble(zi))
    assert deviation(y, exact) < 1e-12
    assert deviation(state, after) < 1e-12


def test_bad_arguments_raise():
    x, b, a = torch.zeros(2, 10), torch.from_numpy(B), torch.from_numpy(A)
    with pytest.raises(ArgumentError, match=r"b must have the shape \(..., 3\), got \(2,\)"):
        _ops.biquad_forward(x, b[:2], a)
    with pytest.raises(ArgumentTypeError, match="a must be float64"):
        _ops.biquad_forward(x, b, a.float())
    with pytest.raises(ArgumentError, match=r"state must have the shape \(2, 2\)"):
        _ops.biquad_forward(x, b, a, torch.zeros(2).double())
    with pytest.raises(ArgumentError, match="unstable"):
        _ops.biquad_forward(x, b, torch.tensor([1.0, 0.0, 1.01]).double())
