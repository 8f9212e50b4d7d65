"""Filters whose coefficients change along the signal, as functions."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck, gradgradcheck

from oracle import bound, deviation
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.functional import allpole, time_varying_sosfilt


def sections(rng, *shape):
    """Sections with their poles inside of a triangle in which they are stable however they change."""
    sos = rng.standard_normal((*shape, 6))
    sos[..., 4:] = rng.uniform(-0.45, 0.45, (*shape, 2))
    sos[..., 3] = 1
    return sos * rng.uniform(0.5, 2, (*shape, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("time", "times"), [(1, 1), (1025, 1), (1025, 41), (500, 500)])
def test_it_is_sosfilt_with_other_coefficients_for_each_stretch(rng, dtype, time, times):
    x = torch.from_numpy(rng.standard_normal((3, time))).to(dtype)
    sos, zi = sections(rng, times, 2), rng.standard_normal((2, 3, 2))
    parts, state, hold = [], zi, time // times
    for row, start in zip(sos, range(0, time, hold), strict=True):
        y, state = signal.sosfilt(row / row[:, 3:4], x[:, start : start + hold].double().numpy(), zi=state)
        parts.append(y)
    found, zf = time_varying_sosfilt(torch.from_numpy(sos), x, torch.from_numpy(zi))
    assert found.dtype == dtype
    assert deviation(found, np.concatenate(parts, -1)) < bound(dtype)
    assert deviation(zf, state) < 1e-12
    from_rest = time_varying_sosfilt(torch.from_numpy(sos), x)
    assert torch.equal(from_rest, time_varying_sosfilt(torch.from_numpy(sos), x, torch.zeros(2, 3, 2).double())[0])


def test_each_channel_may_have_its_own_and_blocks_equal_the_whole(rng):
    x, sos = torch.from_numpy(rng.standard_normal((17, 300))), torch.from_numpy(sections(rng, 17, 300, 2))
    whole, after = time_varying_sosfilt(sos, x, torch.zeros(2, 17, 2).double())
    state, parts = torch.zeros(2, 17, 2).double(), []
    for block, rows in zip(x.split(77, -1), sos.split(77, -3), strict=True):
        y, state = time_varying_sosfilt(rows, block, state)
        parts.append(y)
    assert torch.equal(torch.cat(parts, -1), whole)
    assert torch.equal(state, after)
    assert deviation(time_varying_sosfilt(sos[3], x[3]), whole[3].numpy()) < 1e-14
    assert time_varying_sosfilt(sos, x.T.contiguous().T).equal(whole)


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_gradients_against_finite_differences(rng, check):
    x, zi = (torch.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in ((2, 6), (2, 2, 2)))
    sos = torch.from_numpy(sections(rng, 3, 2)).requires_grad_()
    assert check(time_varying_sosfilt, (sos, x, zi), fast_mode=True)


def test_allpole_is_the_operator_and_checks_its_signal():
    y, past = allpole(torch.ones(3), torch.tensor([[0.0, -1.0]]))
    assert y.tolist() == [1.0, 1.0, 2.0]
    assert past.tolist() == [2.0, 1.0]
    with pytest.raises(ArgumentTypeError, match=r"x must be float32 or float64, got torch\.int64"):
        allpole(torch.arange(3), torch.zeros(1, 1))


@pytest.mark.parametrize(
    ("sos", "zi", "error", "message"),
    [
        (torch.zeros(1, 6).double(), None, ArgumentError, r"\(..., times, sections >= 1, 6\), got \(1, 6\)"),
        (torch.zeros(1, 2, 5).double(), None, ArgumentError, r"got \(1, 2, 5\)"),
        (torch.ones(3, 2, 6).double(), None, ArgumentError, "divide the signal evenly: got 3 for 10 samples"),
        (torch.ones(1, 2, 6).double(), torch.zeros(1, 2, 2).double(), ArgumentError, r"zi must have .* \(2, ..., 2\)"),
        (torch.ones(1, 2, 6), None, ArgumentTypeError, r"must be float64, got torch\.float32"),
        (torch.zeros(1, 2, 6).double(), None, ArgumentError, r"must be finite, got nan"),
    ],
)
def test_bad_sections_raise(sos, zi, error, message):
    with pytest.raises(error, match=message):
        time_varying_sosfilt(sos, torch.zeros(2, 10), zi)
