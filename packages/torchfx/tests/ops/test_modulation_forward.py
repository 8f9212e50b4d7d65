"""Gains, delays and phasers that swing: loops on paper, derivatives, and blocks of any size."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from operators import forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx.errors import ArgumentError, ArgumentTypeError

GAIN, DELAY, PHASER = (forms(f"{name}_forward") for name in ("modulated_gain", "modulated_delay", "phaser"))
KEPT, STAGES = 40, 5
SIZES = [(), (1,), (17,), (3, 2)]
TIMES = [1, 2, 17, 255, 256, 1025]
WIDTHS = [pytest.param(4, id="no feedback"), pytest.param(5, id="feedback")]
LOW = {"gain": [0.0, -1.0, -1.0], "delay": [0.0, 1.0, -20.0, 0.0, -0.95], "phaser": [0.0, 0.001, 0.0, 0.0, -0.95]}
HIGH = {"gain": [0.5, 1.0, 1.0], "delay": [0.5, 40.0, 20.0, 1.0, 0.95], "phaser": [0.01, 0.3, 3.0, 1.0, 0.95]}


def settings(rng, kind, *own):
    """Return settings; delays among them begin below 2 samples and end beyond what is kept."""
    return torch.from_numpy(rng.uniform(LOW[kind], HIGH[kind], (*own, len(LOW[kind]))))


def given(rng, leading, time, dtype=torch.float64):
    """Return a signal whose samples lie apart, what was before it, phases, and the state of filters."""
    x, past = (torch.from_numpy(rng.standard_normal((*leading, n))).to(dtype) for n in (2 * time, KEPT))
    phase = torch.rand(leading, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return x[..., ::2], past, phase, torch.from_numpy(rng.standard_normal((STAGES, *leading)))


def rows(tensor, leading, core=1):
    """Return what each channel has, as NumPy's widest floats."""
    shape = tensor.shape[tensor.dim() - core :]
    return tensor.expand((*leading, *shape)).reshape(-1, *shape).numpy().astype(np.longdouble)


def sine(turns, phase, count):
    return np.sin(2 * np.longdouble(np.pi) * ((phase + turns * np.arange(count)) % 1))


def phase_behind(turns, phase, count):
    exact = Fraction(float(phase)) + Fraction(float(turns)) * count
    return float(exact % 1)


def delayed(past, x, delay, feedback, dtype):
    """Catmull and Rom's spline in the powers of the way from the second sample to the third; the line holds samples."""
    line, late = np.concatenate([past, x]), np.empty_like(x)
    narrow = np.float32 if dtype is torch.float32 else np.float64
    for n, d in enumerate(delay):
        whole = int(np.ceil(d))
        f, at = whole - d, len(past) + n - whole
        p, q, r, s = line[at - 1 : at + 3]
        late[n] = q + f / 2 * (r - p + f * (2 * p - 5 * q + 4 * r - s + f * (3 * (q - r) + s - p)))
        line[len(past) + n] = narrow(x[n] + feedback * late[n])
    return late, line[len(x) :]


def shifted(x, corner, state, feedback):
    """The filters, one after the other, of an input that solves the loop's equation."""
    w = np.tan(np.longdouble(np.pi) * np.minimum(corner, 0.49))
    a, state, wet = (w - 1) / (w + 1), list(state), np.empty_like(x)
    for n in range(len(x)):
        at_rest = sum(s * a[n] ** (len(state) - 1 - k) for k, s in enumerate(state))
        u = (x[n] + feedback * at_rest) / (1 - feedback * a[n] ** len(state))
        for k, s in enumerate(state):
            y = a[n] * u + s
            state[k], u = u - a[n] * y, y
        wet[n] = u
    return wet, state


def same_phase(found, expected):
    """On a circle of one turn."""
    return abs((float(found) - expected + 0.5) % 1 - 0.5) < 1e-13


@pytest.mark.parametrize("form", GAIN)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", SIZES, ids=str)
@pytest.mark.parametrize("time", TIMES)
def test_gains_are_the_definition(rng, form, dtype, leading, time):
    x, _, phase, _ = given(rng, leading, time, dtype)
    of = settings(rng, "gain", *leading[-1:])
    y, after = form(x, of, phase)
    assert y.dtype == dtype
    assert y.shape == (*leading, time)
    channels = zip(rows(x, leading), rows(of, leading), rows(phase, leading, 0), strict=True)
    for i, (own, (turns, middle, depth), start) in enumerate(channels):
        expected = own * (middle + depth * sine(turns, start, time))
        assert deviation(y.reshape(-1, time)[i], expected) < bound(dtype)
        assert same_phase(after.flatten()[i], phase_behind(turns, start, time))


@pytest.mark.parametrize("form", DELAY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", SIZES, ids=str)
@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_delays_are_the_definition(rng, form, dtype, leading, time, width):
    x, past, phase, _ = given(rng, leading, time, dtype)
    of = settings(rng, "delay", *leading[-1:])[..., :width]
    y, after, line = form(x, of, phase, past)
    assert y.dtype == dtype
    assert y.shape == (*leading, time)
    channels = zip(*(rows(each, leading) for each in (x, past, of)), rows(phase, leading, 0), strict=True)
    for i, (own, before, (turns, centre, depth, mix, *loop), start) in enumerate(channels):
        delay = np.clip(centre + depth * sine(turns, start, time), 2, KEPT - 2)
        late, left = delayed(before, own, delay, *(loop or [0]), dtype)
        # Roundings of samples in the line return, each at most 0.95 times as loud.
        assert deviation(y.reshape(-1, time)[i], (1 - mix) * own + mix * late) < (4 if loop else 1) * bound(dtype)
        assert deviation(line.reshape(-1, KEPT)[i], left) < (4 if loop else 1) * bound(dtype)
        assert same_phase(after.flatten()[i], phase_behind(turns, start, time))


@pytest.mark.parametrize("form", PHASER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", SIZES, ids=str)
@pytest.mark.parametrize("time", [1, 17, 257])
@pytest.mark.parametrize("width", WIDTHS)
def test_phasers_are_the_definition(rng, form, dtype, leading, time, width):
    x, _, phase, state = given(rng, leading, time, dtype)
    of = settings(rng, "phaser", *leading[-1:])[..., :width]
    y, after, left = form(x, of, phase, state)
    assert y.dtype == dtype
    assert y.shape == (*leading, time)
    channels = zip(rows(x, leading), rows(of, leading), rows(phase, leading, 0), strict=True)
    for i, (own, (turns, centre, octaves, mix, *loop), start) in enumerate(channels):
        corner = centre * 2 ** (octaves * sine(turns, start, time))
        wet, expected_left = shifted(own, corner, rows(state.reshape(STAGES, -1)[:, i], ()).ravel(), *(loop or [0]))
        assert deviation(y.reshape(-1, time)[i], (1 - mix) * own + mix * wet) < bound(dtype)
        assert np.allclose(left.reshape(STAGES, -1)[:, i], np.array(expected_left, float), rtol=0, atol=1e-11)
        assert same_phase(after.flatten()[i], phase_behind(turns, start, time))


@pytest.mark.parametrize("file", ["native", "composite"])
def test_rows_of_settings_broadcast_with_channels(rng, file):
    """Channels with the same settings share the oscillator's work, unless their phases differ."""
    gain, delay, phaser = (form[file == "composite"].values[0] for form in (GAIN, DELAY, PHASER))
    x, past, phase, state = given(rng, (4, 3), 120)
    phase[:, :2] = phase[:, :1]
    for own in ((), (3,), (4, 1), (1, 1), (4, 3)):
        one, two, three = (settings(rng, kind, *own) for kind in ("gain", "delay", "phaser"))
        together = [*gain(x, one, phase), *delay(x, two, phase, past), *phaser(x, three, phase, state)]
        for i in range(4):
            for k in range(3):
                a, b, c = (each.expand(4, 3, -1)[i, k] for each in (one, two, three))
                apart = [
                    *gain(x[i, k], a, phase[i, k]),
                    *delay(x[i, k], b, phase[i, k], past[i, k]),
                    *phaser(x[i, k], c, phase[i, k], state[:, i, k]),
                ]
                for whole, alone in zip(together[:-1], apart[:-1], strict=True):
                    torch.testing.assert_close(whole[i, k], alone, rtol=0, atol=1e-13)
                torch.testing.assert_close(together[-1][:, i, k], apart[-1], rtol=0, atol=1e-13)


def test_a_past_may_have_more_dimensions_than_the_signal(rng):
    x, past, phase, _ = given(rng, (3,), 100)
    of = settings(rng, "delay")
    y, _, _ = _ops.modulated_delay_forward(x[0], of, phase, past)
    for i in range(3):
        assert torch.equal(y[i], _ops.modulated_delay_forward(x[0], of, phase[i], past[i])[0])


@pytest.mark.parametrize("form", GAIN)
def test_the_phase_of_a_long_signal_is_exact(form):
    turns, count = 0.36395603900570686, 10_000_000
    of = torch.tensor([turns, 0.0, 1.0], dtype=torch.float64)
    y, after = form(torch.ones(count, dtype=torch.float64), of, torch.zeros((), dtype=torch.float64))
    expected = [np.sin(2 * np.pi * float(Fraction(turns) * n % 1)) for n in range(count - 100, count)]
    assert np.allclose(y[-100:], expected, rtol=0, atol=5e-15)
    assert same_phase(after, phase_behind(turns, 0.0, count))


@pytest.mark.parametrize("form", DELAY)
def test_no_feedback_is_a_feedback_of_0(rng, form):
    x, past, phase, _ = given(rng, (2,), 700, torch.float32)
    of = settings(rng, "delay")[:4]
    for found, expected in zip(
        form(x, torch.cat([of, of.new_zeros(1)]), phase, past), form(x, of, phase, past), strict=True
    ):
        assert torch.equal(found, expected)


def test_what_is_not_finite_reaches_the_samples_that_hear_it(rng):
    x, past, phase, state = given(rng, (2,), 900)
    x = x.clone()
    x[0, 300] = torch.nan
    for y in (
        _ops.modulated_gain_forward(x, settings(rng, "gain"), phase)[0],
        _ops.modulated_delay_forward(x, settings(rng, "delay")[:4], phase, past)[0],
    ):
        assert bool(y[0, 300].isnan())
        assert bool(y[0, :300].isfinite().all() and y[0, 300 + KEPT :].isfinite().all())
        assert bool(y[1].isfinite().all())
    y, _, left = _ops.phaser_forward(x, settings(rng, "phaser"), phase, state)
    assert bool(y[0, 300:].isnan().all() and left[:, 0].isnan().all())
    assert bool(y[0, :300].isfinite().all() and y[1].isfinite().all())


# --- derivatives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("width", WIDTHS)
def test_derivatives_agree_with_differences(rng, check, width):
    """Of delays that stay between two samples, where the spline bends smoothly."""
    x, past, phase, _ = (each.clone().requires_grad_() for each in given(rng, (2,), 6))
    of = torch.tensor([0.11, 5.3, 1.1, 0.4, 0.7][:width], dtype=torch.float64, requires_grad=True)
    options = {} if check is gradgradcheck else {"check_forward_ad": True}
    assert check(
        lambda *given: _ops.modulated_delay_forward(*given)[0], (x, of, phase, past), fast_mode=True, **options
    )


# --- misuse ---------------------------------------------------------------------------------------------------


def test_misuse_is_named(rng):
    x, past, phase, state = given(rng, (2,), 10)
    gain, delay, phaser = (settings(rng, kind) for kind in LOW)
    with pytest.raises(ArgumentTypeError, match=r"settings must be float64, got torch\.float32"):
        _ops.modulated_gain_forward(x, gain.float(), phase)
    with pytest.raises(ArgumentError, match=r"settings must have the shape \(\.\.\., 3\), got \(5,\)"):
        _ops.modulated_gain_forward(x, delay, phase)
    with pytest.raises(ArgumentError, match="settings must be finite, got nan at index"):
        _ops.modulated_gain_forward(x, gain * torch.nan, phase)
    with pytest.raises(ArgumentError, match=r"phase must have the shape \(2,\)"):
        _ops.modulated_gain_forward(x, gain, phase[0])
    with pytest.raises(ArgumentError, match=r"past must hold at least 4 samples of torch\.float64 .* got \(2, 3\)"):
        _ops.modulated_delay_forward(x, delay, phase, past[:, :3])
    with pytest.raises(ArgumentError, match=r"past must hold .* of torch\.float32"):
        _ops.modulated_delay_forward(x, delay, phase, past.float())
    with pytest.raises(ArgumentError, match=r"state must have the shape \(stages >= 1, \.\.\.\), got \(0, 2\)"):
        _ops.phaser_forward(x, phaser, phase, state[:0])
    with pytest.raises(ArgumentError, match=r"state must have the shape \(5, 2\)"):
        _ops.phaser_forward(x, phaser, phase, state[:, :1])
