"""Resampling: native and reference against SciPy's upfirdn and each other."""

import math

import numpy as np
import pytest
import scipy.signal
import torch
from torch.autograd import gradcheck, gradgradcheck

from operators import backend, forms
from torchfx import _ops
from torchfx._ops import native
from torchfx.errors import ArgumentError, ArgumentTypeError

RATIOS = [(1, 1), (1, 3), (3, 1), (160, 147), (147, 160), (7, 5), (441, 80), (1001, 1000)]
BOUNDS = {torch.float32: 2e-7, torch.float64: 1e-13}


def taps(up, count, generator):
    return torch.randn(up, count, dtype=torch.float64, generator=generator)


def deviation(y, expected):
    return float((y - expected).abs().max() / expected.abs().max().clamp(min=1e-9))


@pytest.mark.parametrize("run", forms("resample_forward"))
@pytest.mark.parametrize(("up", "down"), RATIOS)
def test_it_is_upfirdn(run, up, down, generator):
    phases, x = taps(up, 7, generator), torch.randn(100, dtype=torch.float64, generator=generator)
    expected = scipy.signal.upfirdn(phases.T.reshape(-1).numpy(), x.numpy(), up, down)
    (y,) = run(x, phases, down, 0, len(expected))
    assert np.abs(y.numpy() - expected).max() < 1e-12


@pytest.mark.skipif(native.library is None, reason="needs the native library")
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize(("up", "down"), RATIOS)
def test_native_equals_the_reference(up, down, dtype, generator):
    """Many and few channels and samples, first outputs before the signal, in it and behind it."""
    own, reference = backend("resample_forward", "cpu"), backend("resample_forward", "reference")
    cases = [(1, 1, 1, 0), (5, 17, 17, -5), (64, 2, 1025, up * 32), (33, 3, 3000, 1234), (700, 1, 50, 12)]
    if up < 10:
        cases.append((64, 1, 9000, up * 32))  # by transforms
    for count, channels, time, origin in cases:
        phases, x = taps(up, count, generator), torch.randn(channels, time, generator=generator).to(dtype)
        arguments = (phases, down, origin, min(math.ceil(time * up / down), 20_000 if up < 10 else 700))
        for signal in (x, x.T.contiguous().T, torch.cat([x, x], -1)[:, ::2], x[:, time // 2 :]):
            assert deviation(own(signal, *arguments)[0], reference(signal, *arguments)[0]) < BOUNDS[dtype]


def test_threads_change_nothing(generator):
    phases, x = taps(160, 60, generator), torch.randn(2, 60_000, generator=generator)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(_ops.resample_forward(x, phases, 147, 4800, 65_307))
    finally:
        torch.set_num_threads(threads)
    assert all(deviation(y, results[0]) < 1e-7 for y in results)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize(("up", "down"), [(3, 2), (1, 4), (4, 1)])
def test_against_finite_differences(check, up, down, generator):
    phases, x = taps(up, 3, generator), torch.randn(2, 9, dtype=torch.float64, generator=generator)
    length = math.ceil(9 * up / down)
    assert check(lambda x: _ops.resample_forward(x, phases, down, 2, length), x.requires_grad_())
    assert check(lambda h: _ops.resample_forward(x.detach(), h, down, 2, length), phases.requires_grad_())


def test_no_samples_in_or_out(generator):
    phases, x = taps(3, 4, generator), torch.randn(2, 20, generator=generator)
    assert _ops.resample_forward(x, phases, 2, 1, 0).shape == (2, 0)
    assert _ops.resample_forward(x[:, :0], phases, 2, 1, 5).tolist() == [[0.0] * 5] * 2


@pytest.mark.parametrize("run", forms("resample_forward"))
def test_misuse(run, generator):
    phases, x = taps(3, 4, generator), torch.randn(2, 20, generator=generator)
    bad = phases.clone()
    bad[1, 2] = math.inf
    for arguments, error, message in (
        ((x, phases.float(), 2, 0, 30), ArgumentTypeError, "taps must be float64, got torch.float32"),
        ((x, phases[None], 2, 0, 30), ArgumentError, r"taps must have the shape \(up >= 1, n >= 1\), got \(1, 3, 4\)"),
        ((x, phases, 6, 0, 30), ArgumentError, "no divisor in common with up = 3, got 6"),
        ((x, phases, 0, 0, 30), ArgumentError, "down must be >= 1"),
        ((x, phases, 2, 0, -1), ArgumentError, "length must be >= 0, got -1"),
        ((x, bad, 2, 0, 30), ArgumentError, r"taps must be finite, got inf at index \[1, 2\]"),
    ):
        with pytest.raises(error, match=message):
            run(*arguments)
