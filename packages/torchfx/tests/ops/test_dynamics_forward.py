"""Detectors of dynamics processors: loops on paper, closed forms, and derivatives of every order."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from operators import forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx._ops import native
from torchfx.errors import ArgumentError, ArgumentTypeError

ballistics = _ops.ballistics_forward
FORMS = forms("ballistics_forward")
DYNAMICS = forms("dynamics_forward")
LIMITER = forms("limiter_forward")


needs_native = pytest.mark.skipif(native.library is None, reason="needs the native library")


def given(rng, leading, own, time, dtype=torch.float64):
    """Return signal, rise and fall, state."""
    x = torch.from_numpy(rng.standard_normal((*leading, time))).to(dtype)
    state = torch.from_numpy(rng.standard_normal(np.broadcast_shapes(leading, own)))
    return x, torch.from_numpy(rng.uniform(0.01, 0.9, (*own, 2))), state


def settings(rng, *own):
    """Return settings with a knee, a bound and a makeup gain."""
    low = [-20.0, -0.9, -3.0, 0.0, -60.0, -6.0, 0.01, 0.01]
    high = [0.0, 0.0, 0.0, 12.0, -30.0, 6.0, 0.9, 0.9]
    return torch.from_numpy(rng.uniform(low, high, (*own, 8)))


def loop(x, rise, fall, last):
    """y[t] = y[t-1] + c (x[t] - y[t-1]) for one channel."""
    y = []
    for sample in x:
        last = last + (rise if sample > last else fall) * (sample - last)
        y.append(last)
    return np.array(y), last


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("time", [1, 65, 1025])
def test_ballistics_equal_a_loop(rng, form, dtype, time):
    x, coefficients, state = given(rng, (3,), (3,), min(time, 65) if "reference" in form.__name__ else time, dtype)
    coefficients[1] = torch.tensor([1.0, 0.1])  # at once, and slowly
    y, after = form(x, coefficients, state)
    for row in range(3):
        expected, last = loop(x[row].double().numpy(), *coefficients[row].tolist(), float(state[row]))
        assert deviation(y[row], expected) < bound(dtype)
        assert abs(float(after[row]) - last) < 1e-12


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("leading", "own"), [((1,), ()), ((17,), ()), ((2, 1), (3,)), ((), (5,))])
@pytest.mark.parametrize("time", [1, 1025])
def test_the_native_pass_equals_level_curve_and_ballistics(rng, dtype, leading, own, time):
    fused, composite = (form.values[0] for form in DYNAMICS)
    key = torch.from_numpy(rng.standard_normal((*leading, 2 * time)) * 10 ** rng.uniform(-6, 1, 2 * time)).to(dtype)
    key, of = key[..., ::2], settings(rng, *own)
    key[..., time // 2] = 0.0
    state = torch.from_numpy(rng.uniform(-10, 0, np.broadcast_shapes(leading, own)))
    gain, after = fused(torch.ones_like(key), key, of, state)
    expected, last = composite(torch.ones_like(key).double(), key.double(), of, state)
    assert gain.dtype == dtype
    assert float((gain / expected - 1).abs().max()) < (7e-8 if dtype == torch.float32 else 1e-13)
    assert torch.allclose(after, last, rtol=0, atol=5e-8 if dtype == torch.float32 else 1e-11)  # dB


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("leading", "heard", "own", "link"),
    [
        ((2,), None, (), -2),
        ((3, 2), None, (3, 1), -2),
        ((2, 4), None, (4,), -3),
        ((2,), None, (2,), -2),  # channels share a level, but not a gain
        ((), None, (), -2),
        ((2,), None, (3, 2), None),
        ((3, 2), (2,), (), -2),
        ((2, 3), (1,), (), None),
        ((2, 3, 2), (1, 3, 1), (), None),  # gains shared by channels that lie apart
    ],
)
def test_channels_share_levels_and_gains(rng, dtype, leading, heard, own, link):
    x = torch.from_numpy(rng.standard_normal((*leading, 700))).to(dtype)
    key = None if heard is None else torch.from_numpy(rng.standard_normal((*heard, 700))).to(dtype)
    of = settings(rng, *own)
    fused, composite = (form.values[0] for form in DYNAMICS)
    for view in (x, torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2]):
        y, after = fused(view, key, of, None, link)
        expected, last = composite(x.double(), None if key is None else key.double(), of, None, link)
        assert torch.allclose(y.double(), expected, rtol=7e-8 if dtype == torch.float32 else 1e-12, atol=0)
        assert torch.allclose(after, last, rtol=0, atol=5e-8 if dtype == torch.float32 else 1e-11)
        assert after.shape == last.shape


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("leading", "own", "link", "delay", "ahead", "spread"),
    [
        ((2,), (), -2, 7, 7, 0),
        ((2,), (), None, 0, 0, 0),
        ((), (3,), None, 1500, 1500, 0),
        ((3, 2), (3, 1), -2, 20, 5, 0),
        ((2,), (), None, 40, 5, 9),
        ((3, 2), (3, 1), -2, 10, 5, 4),
        ((2,), (5, 2), -2, 3, 3, 0),
    ],
)
def test_the_native_limiter_equals_maxima_ballistics_and_mean(rng, dtype, leading, own, link, delay, ahead, spread):
    time = 3000
    x, past = (torch.from_numpy(rng.standard_normal((*leading, n))).to(dtype) for n in (time, delay))
    peaks = torch.from_numpy(rng.standard_normal((*leading, time + spread))).to(dtype) if spread else None
    of = torch.from_numpy(rng.uniform([0.1, 0.001], [1.0, 0.1], (*own, 2)))
    shared = (*leading[:-1], 1) if link else leading
    shared = np.broadcast_shapes(shared, own)
    state, ramp = (torch.from_numpy(rng.uniform(0, 0.5, (*shared, *n))) for n in ((), (ahead,)))
    ramp = (ramp * 2**40).round() / 2**40
    fused, composite = (form.values[0] for form in LIMITER)
    for view in (x, torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2]):
        found = fused(view, past, peaks, of, state, ramp, link)
        expected = composite(
            x.double(), past.double(), None if peaks is None else peaks.double(), of, state, ramp, link
        )
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one.double(), other, rtol=0, atol=3e-7 if one.dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("form", DYNAMICS)
def test_the_gain_of_a_constant_is_the_curve(form):
    """Rise and fall of 1 smooth nothing."""
    levels = torch.linspace(-80, 20, 1001, dtype=torch.float64)
    of = torch.tensor([-20.0, -0.75, -1.5, 10.0, -40.0, 3.0, 1.0, 1.0], dtype=torch.float64)
    found = 20 * torch.log10(form(torch.ones_like(levels), 10 ** (levels / 20), of)[0])
    for level, gain in zip(levels.tolist(), found.tolist(), strict=True):
        over = level + 20
        above = max(over, 0.0) if abs(over) >= 5 else (over + 5) ** 2 / 20
        below = max(-over, 0.0) if abs(over) >= 5 else (5 - over) ** 2 / 20
        assert gain == pytest.approx(max(-0.75 * above - 1.5 * below, -40.0) + 3, abs=1e-11)


COEFFICIENTS = torch.tensor([0.3, 0.01], dtype=torch.float64)
SETTINGS = torch.tensor([-9, -0.5, 0, 6, -60, 0, 0.1, 0.02], dtype=torch.float64)


def test_a_limiter_in_blocks_equals_the_whole(rng):
    """Bit for bit: its mean adds up whole numbers of the last place."""
    x, past = torch.from_numpy(rng.standard_normal((5, 3000))), torch.zeros(5, 100).double()
    of, rest = torch.tensor([0.5, 0.01]).double(), [torch.zeros(5).double(), torch.zeros(5, 100).double()]
    whole, *after = _ops.limiter_forward(x, past, None, of, *rest)
    parts = []
    for block in x.split([1, 3, 0, 1020, 1025, 951], dim=-1):
        y, *rest = _ops.limiter_forward(block, past, None, of, *rest)
        past = torch.cat([past, block], dim=-1)[:, block.shape[-1] :]
        parts.append(y)
    assert torch.equal(torch.cat(parts, -1), whole)
    assert all(torch.equal(one, other) for one, other in zip(rest, after, strict=True))


def test_what_is_not_finite_makes_the_rest_nan(rng):
    of = settings(rng)
    for bad in (math.nan, math.inf):
        key = torch.ones(2, 40)
        key[0, 17] = bad
        gain, _ = _ops.dynamics_forward(torch.ones_like(key), key, of)
        assert bool(gain[0, 17:].isnan().all())
        assert bool(gain[0, :17].isfinite().all() and gain[1].isfinite().all())


@pytest.mark.parametrize("form", forms("sliding_max"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 2, 3, 7, 64, 240, 5000])
def test_sliding_maxima(rng, form, dtype, window):
    x = torch.from_numpy(rng.standard_normal((2, 3, 10_000))).to(dtype)[..., ::2]
    [found] = form(x, window)
    assert torch.equal(found, x.unfold(-1, window, 1).amax(-1))


def test_sliding_maxima_keep_a_nan_as_long_as_they_see_it():
    x = torch.zeros(100)
    x[50] = math.nan
    assert _ops.sliding_max(x, 10).isnan().nonzero().flatten().tolist() == list(range(41, 51))


# --- gradients ------------------------------------------------------------------------------------------------


def test_gradients_of_gain_and_maxima(rng):
    key, of = torch.from_numpy(rng.standard_normal((2, 8))).requires_grad_(), settings(rng, 2).requires_grad_()
    signal = torch.from_numpy(rng.standard_normal((2, 8))).requires_grad_()
    assert gradcheck(_ops.dynamics_forward, (signal, key, of), fast_mode=True, check_forward_ad=True)
    assert gradcheck(lambda x, of: _ops.dynamics_forward(x, None, of, None, -2), (key, of), fast_mode=True)
    past, state, ramp = (torch.from_numpy(rng.uniform(0.1, 0.9, (2, *n))) for n in ((3,), (), (3,)))
    limits = torch.tensor([[0.3, 0.1], [0.2, 0.3]]).double().requires_grad_()
    assert gradcheck(lambda x, of: _ops.limiter_forward(x, past, None, of, state, ramp), (key, limits), fast_mode=True)
    assert gradcheck(lambda x: _ops.sliding_max(x, 3), (key,), fast_mode=True, check_forward_ad=True)


# --- misuse ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("coefficients", "state", "error", "message"),
    [
        (torch.zeros(2), None, ArgumentTypeError, r"coefficients must be float64, got torch\.float32"),
        (torch.zeros(3).double(), None, ArgumentError, r"shape \(..., 2\), got \(3,\)"),
        (torch.zeros(3, 2).double(), None, ArgumentError, r"broadcast with the signal's \(2,\), got \(3,\)"),
        (torch.full((2,), torch.nan).double(), None, ArgumentError, "coefficients must be finite, got nan"),
        (torch.zeros(2).double(), torch.zeros(3).double(), ArgumentError, r"state must have the shape \(2,\)"),
    ],
)
def test_bad_arguments_raise(form, coefficients, state, error, message):
    with pytest.raises(error, match=message):
        form(torch.zeros(2, 10), coefficients, state)


def test_windows_that_do_not_fit_raise():
    for window in (0, 12):
        with pytest.raises(ArgumentError, match=rf"window must lie in \[1, 11\] for 10 samples, got {window}"):
            _ops.sliding_max(torch.zeros(10), window)


def test_signals_that_do_not_belong_together_raise(rng):
    x, of = torch.zeros(2, 10), settings(rng)
    with pytest.raises(ArgumentError, match=r"key must hold 10 samples of torch\.float32 on cpu, got 9"):
        _ops.dynamics_forward(x, torch.zeros(2, 9), of)
    with pytest.raises(ArgumentError, match=r"past must hold 4 samples of torch\.float32 .* got 4 of torch\.float64"):
        _ops.limiter_forward(x, torch.zeros(2, 4).double(), None, of[..., :2], of[:0], of[:0])
    with pytest.raises(ArgumentError, match=r"peaks must hold 10 samples .* got 9"):
        _ops.limiter_forward(x, torch.zeros(2, 4), torch.zeros(2, 9), of[..., :2], of[:0], of[:0])
