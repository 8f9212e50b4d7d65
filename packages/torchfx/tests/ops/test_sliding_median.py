"""Sliding medians against sorted windows."""

import math

import pytest
import torch
from scipy import ndimage
from torch.autograd import gradcheck, gradgradcheck

from operators import forms
from torchfx import _ops
from torchfx._ops import native
from torchfx.errors import ArgumentError


@pytest.mark.parametrize("form", forms("sliding_median"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 3, 31, 101])
def test_medians_are_scipys(rng, form, dtype, window):
    for shape in ((600,), (17, 300), (2, 3, 101)):
        x = rng.standard_normal(shape).round(1).clip(-1.5)  # many equal ones
        x[..., 7::50], x[..., 9::60] = math.inf, -math.inf
        whole = ndimage.median_filter(x, size=(*[1] * (x.ndim - 1), window))
        expected = torch.from_numpy(whole[..., window // 2 : x.shape[-1] - window // 2])
        for laid_out in (torch.from_numpy(x), torch.from_numpy(x).mT.contiguous().mT if x.ndim > 1 else None):
            if laid_out is not None:
                [found] = form(laid_out.to(dtype), window)
                assert torch.equal(found, expected.to(dtype))


@pytest.mark.skipif(native.library is None, reason="needs the native library")
def test_a_long_signal_is_filtered_in_parts(rng):
    x = torch.from_numpy(rng.standard_normal((3, 20_000)))
    y = _ops.sliding_median(x, 31)
    for start in (0, 4000, 4090, 8170, 15_000):
        assert torch.equal(y[:, start : start + 50], x[:, start : start + 80].unfold(-1, 31, 1).median(-1).values)


@pytest.mark.parametrize("form", forms("sliding_median"))
def test_medians_are_nan_as_long_as_they_see_one(form):
    x = torch.arange(100.0).repeat(5, 1)
    x[1, 50] = math.nan
    [found] = form(x, 11)
    assert found[1].isnan().nonzero().flatten().tolist() == list(range(40, 51))
    assert found[[0, 2, 3, 4]].isfinite().all()


def test_gradients_go_to_the_sample_that_was_picked(rng):
    x = torch.from_numpy(rng.standard_normal((2, 12))).requires_grad_()
    assert gradcheck(lambda x: _ops.sliding_median(x, 5), (x,), check_forward_ad=True)
    assert gradgradcheck(lambda x: _ops.sliding_median(x, 5), (x,))
    equal = torch.zeros(5, requires_grad=True)
    assert torch.autograd.grad(_ops.sliding_median(equal, 3).sum(), equal)[0].tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("window", [-1, 0, 2, 13])
def test_windows_without_a_middle_raise(window):
    with pytest.raises(ArgumentError, match=rf"window must be odd and lie in \[1, 11\] for 10 samples, got {window}"):
        _ops.sliding_median(torch.zeros(10), window)
