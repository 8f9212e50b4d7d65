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

GAIN, DELAY, PHASER = (
    forms(f"{name}_forward", "composite") for name in ("modulated_gain", "modulated_delay", "phaser")
)
KEPT, STAGES = 40, 5
SIZES = [(), (1,), (17,), (3, 2)]
TIMES = [1, 2, 17, 255, 256, 1025]
LOW = {"gain": [0.0, -1.0, -1.0], "delay": [0.0, 1.0, -20.0, 0.0], "phaser": [0.0, 0.001, 0.0, 0.0]}
HIGH = {"gain": [0.5, 1.0, 1.0], "delay": [0.5, 40.0, 20.0, 1.0], "phaser": [0.01, 0.3, 3.0, 1.0]}


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


def delayed(past, x, delay):
    """Catmull and Rom's spline in the powers of the way from the second sample to the third."""
    heard = np.concatenate([past, x])
    whole = np.ceil(delay).astype(int)
    f = whole - delay
    at = len(past) + np.arange(len(x)) - whole
    a, b, c, d = (heard[at + k] for k in (-1, 0, 1, 2))
    return b + f / 2 * (c - a + f * (2 * a - 5 * b + 4 * c - d + f * (3 * (b - c) + d - a)))


def shifted(x, corner, state):
    w = np.tan(np.longdouble(np.pi) * np.minimum(corner, 0.49))
    a, after = (w - 1) / (w + 1), []
    for s in state:
        y = np.empty_like(x)
        for n in range(len(x)):
            y[n] = a[n] * x[n] + s
            s = x[n] - a[n] * y[n]
        x = y
        after.append(s)
    return x, after


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
def test_delays_are_the_definition(rng, form, dtype, leading, time):
    x, past, phase, _ = given(rng, leading, time, dtype)
    of = settings(rng, "delay", *leading[-1:])
    y, after = form(x, past, of, phase)
    assert y.dtype == dtype
    assert y.shape == (*leading, time)
    channels = zip(*(rows(each, leading) for each in (x, past, of)), rows(phase, leading, 0), strict=True)
    for i, (own, before, (turns, centre, depth, mix), start) in enumerate(channels):
        delay = np.clip(centre + depth * sine(turns, start, time), 2, KEPT - 2)
        expected = (1 - mix) * own + mix * delayed(before, own, delay)
        assert deviation(y.reshape(-1, time)[i], expected) < bound(dtype)
        assert same_phase(after.flatten()[i], phase_behind(turns, start, time))


@pytest.mark.parametrize("form", PHASER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", SIZES, ids=str)
@pytest.mark.parametrize("time", [1, 17, 257])
def test_phasers_are_the_definition(rng, form, dtype, leading, time):
    x, _, phase, state = given(rng, leading, time, dtype)
    of = settings(rng, "phaser", *leading[-1:])
    y, after, left = form(x, of, phase, state)
    assert y.dtype == dtype
    assert y.shape == (*leading, time)
    channels = zip(rows(x, leading), rows(of, leading), rows(phase, leading, 0), strict=True)
    for i, (own, (turns, centre, octaves, mix), start) in enumerate(channels):
        corner = centre * 2 ** (octaves * sine(turns, start, time))
        wet, expected_left = shifted(own, corner, rows(state.reshape(STAGES, -1)[:, i], ()).ravel())
        assert deviation(y.reshape(-1, time)[i], (1 - mix) * own + mix * wet) < bound(dtype)
        assert np.allclose(left.reshape(STAGES, -1)[:, i], np.array(expected_left, float), rtol=0, atol=1e-11)
        assert same_phase(after.flatten()[i], phase_behind(turns, start, time))


@pytest.mark.parametrize("file", ["native", "composite"])
def test_rows_of_settings_broadcast_with_channels(rng, file):
    """Channels with the same settings share the oscillator's work, unless their phases differ."""
    gain, delay, phaser = (form[file == "composite"].values[0] for form in (GAIN, DELAY, PHASER))
    x, past, phase, state = given(rng, (4, 3), 600)
    phase[:, :2] = phase[:, :1]
    for own in ((), (3,), (4, 1), (1, 1), (4, 3)):
        one, two, three = (settings(rng, kind, *own) for kind in ("gain", "delay", "phaser"))
        together = [*gain(x, one, phase), *delay(x, past, two, phase), *phaser(x, three, phase, state)]
        for i in range(4):
            for k in range(3):
                a, b, c = (each.expand(4, 3, -1)[i, k] for each in (one, two, three))
                apart = [
                    *gain(x[i, k], a, phase[i, k]),
                    *delay(x[i, k], past[i, k], b, phase[i, k]),
                    *phaser(x[i, k], c, phase[i, k], state[:, i, k]),
                ]
                for whole, alone in zip(together[:-1], apart[:-1], strict=True):
                    torch.testing.assert_close(whole[i, k], alone, rtol=0, atol=1e-13)
                torch.testing.assert_close(together[-1][:, i, k], apart[-1], rtol=0, atol=1e-13)


def test_a_past_may_have_more_dimensions_than_the_signal(rng):
    x, past, phase, _ = given(rng, (3,), 100)
    of = settings(rng, "delay")
    y, _ = _ops.modulated_delay_forward(x[0], past, of, phase)
    for i in range(3):
        assert torch.equal(y[i], _ops.modulated_delay_forward(x[0], past[i], of, phase[i])[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_equal_the_whole(rng, dtype):
    x, past, phase, state = given(rng, (2,), 3000, dtype)
    gain, delay, phaser = (settings(rng, kind) for kind in LOW)
    heard = torch.cat([past, x], dim=-1)
    whole = (
        *_ops.modulated_gain_forward(x, gain, phase),
        *_ops.modulated_delay_forward(x, past, delay, phase),
        *_ops.phaser_forward(x, phaser, phase, state),
    )
    phases, done, parts = [phase] * 3, 0, []
    for block in x.split([1, 3, 0, 1020, 1025, 951], dim=-1):
        one, phases[0] = _ops.modulated_gain_forward(block, gain, phases[0])
        two, phases[1] = _ops.modulated_delay_forward(block, heard[:, done : done + KEPT], delay, phases[1])
        three, phases[2], state = _ops.phaser_forward(block, phaser, phases[2], state)
        parts.append((one, two, three))
        done += block.shape[-1]
    joined = [torch.cat(each, dim=-1) for each in zip(*parts, strict=True)]
    for found, expected in zip(joined, (whole[0], whole[2], whole[4]), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6 if dtype is torch.float32 else 1e-11)
    for found, expected in zip((*phases, state), (whole[1], whole[3], whole[5], whole[6]), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("form", GAIN)
def test_the_phase_of_a_long_signal_is_exact(form):
    turns, count = 0.36395603900570686, 10_000_000
    of = torch.tensor([turns, 0.0, 1.0], dtype=torch.float64)
    y, after = form(torch.ones(count, dtype=torch.float64), of, torch.zeros((), dtype=torch.float64))
    expected = [np.sin(2 * np.pi * float(Fraction(turns) * n % 1)) for n in range(count - 100, count)]
    assert np.allclose(y[-100:], expected, rtol=0, atol=5e-15)
    assert same_phase(after, phase_behind(turns, 0.0, count))


def test_no_samples_change_nothing(rng):
    x, past, phase, state = given(rng, (2,), 0)
    one, two, three = (settings(rng, kind).requires_grad_() for kind in LOW)
    for recorded in (False, True):
        with torch.set_grad_enabled(recorded):
            assert torch.equal(_ops.modulated_gain_forward(x, one, phase)[1], phase)
            assert torch.equal(_ops.modulated_delay_forward(x, past, two, phase)[1], phase)
            y, after, left = _ops.phaser_forward(x, three, phase, state)
        assert y.shape == (2, 0)
        assert torch.equal(after, phase)
        assert torch.equal(left, state)


def test_what_is_not_finite_reaches_the_samples_that_hear_it(rng):
    x, past, phase, state = given(rng, (2,), 900)
    x = x.clone()
    x[0, 300] = torch.nan
    for y in (
        _ops.modulated_gain_forward(x, settings(rng, "gain"), phase)[0],
        _ops.modulated_delay_forward(x, past, settings(rng, "delay"), phase)[0],
    ):
        assert bool(y[0, 300].isnan())
        assert bool(y[0, :300].isfinite().all() and y[0, 300 + KEPT :].isfinite().all())
        assert bool(y[1].isfinite().all())
    y, _, left = _ops.phaser_forward(x, settings(rng, "phaser"), phase, state)
    assert bool(y[0, 300:].isnan().all() and left[:, 0].isnan().all())
    assert bool(y[0, :300].isfinite().all() and y[1].isfinite().all())


# --- derivatives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_derivatives_agree_with_differences(rng, check):
    x, past, phase, state = (each.clone().requires_grad_() for each in given(rng, (2,), 6))
    of = {
        "gain": torch.tensor([[0.13, 0.4, 0.3]], dtype=torch.float64, requires_grad=True),
        "delay": torch.tensor([0.11, 5.3, 1.1, 0.4], dtype=torch.float64, requires_grad=True),
        "phaser": torch.tensor([0.09, 0.1, 0.7, 0.4], dtype=torch.float64, requires_grad=True),
    }
    options = {} if check is gradgradcheck else {"check_forward_ad": True}
    for function, arguments in (
        (_ops.modulated_gain_forward, (x, of["gain"], phase)),
        (_ops.modulated_delay_forward, (x, past, of["delay"], phase)),
        (_ops.phaser_forward, (x, of["phaser"], phase, state)),
    ):
        assert check(lambda *given, call=function: call(*given)[0], arguments, fast_mode=True, **options)


def test_opcheck_is_clean(rng):
    x, past, phase, state = given(rng, (3,), 20)
    operators = torch.ops.torchfx_ext
    torch.library.opcheck(operators.modulated_gain_forward.default, (x, settings(rng, "gain"), phase))
    torch.library.opcheck(operators.modulated_delay_forward.default, (x, past, settings(rng, "delay"), phase))
    torch.library.opcheck(operators.phaser_forward.default, (x, settings(rng, "phaser"), phase, state))


def test_vmap_is_a_loop(rng):
    x, past, phase, state = given(rng, (4,), 50)
    gain, delay, phaser = settings(rng, "gain"), settings(rng, "delay", 4), settings(rng, "phaser")
    calls = [
        (_ops.modulated_gain_forward, (0, None, 0), (x, gain, phase)),
        (_ops.modulated_gain_forward, (None, None, 0), (x[0], gain, phase)),
        (_ops.modulated_delay_forward, (0, None, 0, 0), (x, past[0], delay, phase)),
        (_ops.modulated_delay_forward, (None, 0, 0, None), (x[0], past, delay, phase[0])),
        (_ops.phaser_forward, (0, None, None, 1), (x, phaser, phase[0], state)),
    ]
    for call, dims, arguments in calls:
        batched = torch.func.vmap(call, dims)(*arguments)
        for i in range(4):
            chosen = [each if dim is None else each.select(dim, i) for each, dim in zip(arguments, dims, strict=True)]
            for whole, alone in zip(batched, call(*chosen), strict=True):
                torch.testing.assert_close(whole[i], alone, rtol=0, atol=1e-13)


# --- misuse ---------------------------------------------------------------------------------------------------


def test_misuse_is_named(rng):
    x, past, phase, state = given(rng, (2,), 10)
    gain, delay, phaser = (settings(rng, kind) for kind in LOW)
    with pytest.raises(ArgumentTypeError, match=r"settings must be float64, got torch\.float32"):
        _ops.modulated_gain_forward(x, gain.float(), phase)
    with pytest.raises(ArgumentError, match=r"settings must have the shape \(\.\.\., 3\), got \(4,\)"):
        _ops.modulated_gain_forward(x, delay, phase)
    with pytest.raises(ArgumentError, match="settings must be finite, got nan at index"):
        _ops.modulated_gain_forward(x, gain * torch.nan, phase)
    with pytest.raises(ArgumentError, match=r"phase must have the shape \(2,\)"):
        _ops.modulated_gain_forward(x, gain, phase[0])
    with pytest.raises(ArgumentError, match=r"past must hold at least 4 samples of torch\.float64 .* got \(2, 3\)"):
        _ops.modulated_delay_forward(x, past[:, :3], delay, phase)
    with pytest.raises(ArgumentError, match=r"past must hold .* of torch\.float32"):
        _ops.modulated_delay_forward(x, past.float(), delay, phase)
    with pytest.raises(ArgumentError, match=r"state must have the shape \(stages >= 1, \.\.\.\), got \(0, 2\)"):
        _ops.phaser_forward(x, phaser, phase, state[:0])
    with pytest.raises(ArgumentError, match=r"state must have the shape \(5, 2\)"):
        _ops.phaser_forward(x, phaser, phase, state[:, :1])
