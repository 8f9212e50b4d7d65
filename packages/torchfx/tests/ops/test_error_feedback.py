"""The quantiser with error feedback: its definition, in NumPy."""

import numpy as np
import pytest
import torch

from operators import forms
from torchfx import _ops
from torchfx.effect.dither import SHAPINGS
from torchfx.errors import ArgumentError, ArgumentTypeError

FORMS = forms("error_feedback_forward")
TAPS = [torch.tensor(taps, dtype=torch.float64) for taps in ((0.5,), *list(SHAPINGS.values())[1:])]


def loop(x, dither, taps, errors):
    """The definition for one channel; np.round takes halves to the even number, too."""
    past, y = list(errors), []
    for sample, noise in zip(x, dither, strict=True):
        wanted = sample - sum(tap * error for tap, error in zip(taps, past, strict=True))
        y.append(np.round(wanted + noise))
        past = [y[-1] - wanted, *past[:-1]]
    return y, past


@pytest.mark.parametrize("run", FORMS)
@pytest.mark.parametrize("taps", TAPS, ids=len)
@pytest.mark.parametrize(("leading", "time"), [((), 1), ((1,), 513), ((17,), 700), ((2, 3), 1025)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_the_definition(generator, run, taps, leading, time, dtype):
    x = 100 * torch.randn(*leading, 2 * time, dtype=dtype, generator=generator)[..., ::2]
    dither = torch.rand(*leading[-1:], time, dtype=dtype, generator=generator) - 0.5
    errors = torch.rand(*leading, len(taps), dtype=torch.float64, generator=generator) - 0.5
    y, after = run(x, dither, taps, errors)
    rows = [each.expand(*leading, each.shape[-1]).reshape(-1, each.shape[-1]).double() for each in (x, dither, errors)]
    for i, (own, noise, past) in enumerate(zip(*rows, strict=True)):
        expected, left = loop(own.tolist(), noise.tolist(), taps.tolist(), past.tolist())
        assert y.reshape(-1, time)[i].tolist() == expected
        assert np.allclose(after.reshape(-1, len(taps))[i], left, rtol=0, atol=1e-9)


def test_every_sample_behind_a_nan_is_one():
    x = torch.zeros(2, 600)
    x[0, 100] = torch.nan
    y, _ = _ops.error_feedback_forward(x, torch.zeros(600), TAPS[0])
    assert not y[0, :100].any()
    assert bool(y[0, 100:].isnan().all())
    assert not y[1].any()


def test_the_gradient_is_zero(generator):
    x = torch.randn(3, 50, generator=generator).requires_grad_()
    _ops.error_feedback_forward(x, torch.zeros(50), TAPS[0])[0].sum().backward()
    assert not x.grad.any()


def test_misuse_is_named():
    x, taps = torch.zeros(2, 5), TAPS[0]
    with pytest.raises(ArgumentError, match=r"dither must hold 5 samples of torch\.float32 on cpu"):
        _ops.error_feedback_forward(x, x[:, :4], taps)
    with pytest.raises(ArgumentError, match="taps must be finite, got nan"):
        _ops.error_feedback_forward(x, x, taps * torch.nan)
    with pytest.raises(ArgumentError, match=r"taps must have the shape \(\.\.\., n >= 1\), got \(0,\)"):
        _ops.error_feedback_forward(x, x, taps[:0])
    with pytest.raises(ArgumentTypeError, match="taps must be float64"):
        _ops.error_feedback_forward(x, x, taps.float())
    with pytest.raises(ArgumentError, match=r"errors must have the shape \(2, 1\)"):
        _ops.error_feedback_forward(x, x, taps, torch.zeros(2, 2, dtype=torch.float64))
