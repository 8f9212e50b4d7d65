"""`torchfx_ext::lti_forward` against SciPy in long double, and against the two operators it stands for."""

import pytest
import torch
from scipy import signal

from operators import forms
from oracle import LENGTHS, bound, deviation, exact_fir, exact_sos
from torchfx import _ops
from torchfx.errors import ArgumentError

SOS = signal.cheby1(5, 0.5, 3000, fs=48000, output="sos")
FORMS = forms("lti_forward", "composite")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("taps", [1, 31, 300])
@pytest.mark.parametrize("length", [*LENGTHS, 70_000])
def test_equals_response_then_cascade(rng, form, length, taps, dtype):
    b = rng.standard_normal(taps)
    for channels in (1, 3, 17):
        x = torch.from_numpy(rng.standard_normal((channels, length))).to(dtype)[..., :: 2 if length < 2000 else 1]
        y, _, _ = form(x, torch.from_numpy(b), torch.from_numpy(SOS))
        assert deviation(y, exact_sos(SOS, exact_fir(b, x.numpy()))) < bound(dtype)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_equal_the_whole(rng, form):
    b, sos = torch.from_numpy(rng.standard_normal(65)), torch.from_numpy(SOS)
    x = torch.from_numpy(rng.standard_normal((2, 9000)))
    whole, *after = form(x, b, sos)
    states, blocks = [None, None], []
    for block in x.split([1, 63, 64, 65, 4000, 4807], dim=-1):
        y, *states = form(block, b, sos, *states)
        blocks.append(y)
    assert deviation(torch.cat(blocks, -1), whole.numpy()) < 1e-12
    assert all(deviation(found, expected.numpy()) < 1e-12 for found, expected in zip(states, after, strict=True))


def test_gradients_and_transforms_take_the_two_operators(rng):
    x = torch.from_numpy(rng.standard_normal((4, 300)))
    b, sos = torch.from_numpy(rng.standard_normal(5)), torch.from_numpy(SOS)
    assert torch.autograd.gradcheck(
        lambda x, b: _ops.lti_forward(x, b, sos), (x[:, :7].clone().requires_grad_(), b.clone().requires_grad_())
    )
    expected, _, _ = _ops.lti_forward(x, b, sos)
    assert torch.allclose(torch.func.vmap(lambda v: _ops.lti_forward(v, b, sos)[0])(x), expected)


@pytest.mark.parametrize("form", FORMS)
def test_bad_coefficients_raise(form):
    x, b, sos = torch.zeros(2, 10), torch.ones(3).double(), torch.from_numpy(SOS.copy())
    with pytest.raises(ArgumentError, match="taps must be finite"):
        form(x, b * float("nan"), sos)
    sos[1, 5] = 1.0
    with pytest.raises(ArgumentError, match="section 1 is unstable"):
        form(x, b, sos)
