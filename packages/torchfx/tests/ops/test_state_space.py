"""State-space operators: loops on paper, SciPy's filters, and derivatives of every order."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck, gradgradcheck

from operators import forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx._ops.state_space import gradient
from torchfx.errors import ArgumentError, ArgumentTypeError

linear = _ops.operators["state_space_forward"]
saturated = _ops.operators["saturated_forward"]
FORMS = forms("state_space_forward")
SATURATED_FORMS = forms("saturated_forward")


def systems(rng, *shape, states):
    """Systems whose states shrink at every step, however they change."""
    m = rng.standard_normal((*shape, states + 1, states + 1))
    m[..., :-1, :-1] *= 0.9 / np.linalg.norm(m[..., :-1, :-1], 2, axis=(-2, -1), keepdims=True)
    return torch.from_numpy(m)


def given(rng, leading, own, time, states=2, times=None, dtype=torch.float64):
    """Return signal, system and state."""
    x = torch.from_numpy(rng.standard_normal((*leading, time))).to(dtype)
    state = torch.from_numpy(rng.standard_normal((*np.broadcast_shapes(leading, own), states)))
    return x, systems(rng, *own, time if times is None else times, states=states), state


def loop(x, system, state, drive=None):
    """[s'; y] = M [s; x] for one channel, in NumPy; `drive` is (feedback, drive), solved for u by bisection."""
    s, y = np.array(state), []
    for t, sample in enumerate(x):
        m = system[t * len(system) // len(x)]
        if drive is not None:
            k, d = drive
            low, high = -1e3, 1e3
            for _ in range(200):
                u = (low + high) / 2
                z = sample - k * (m[-1, :-1] @ s + m[-1, -1] * u)
                low, high = (u, high) if np.tanh(d * z) / d > u else (low, u)
            sample = u
        out = m @ np.append(s, sample)
        s = out[:-1]
        y.append(out[-1])
    return np.array(y), s


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("states", "time", "times"), [(1, 1, 1), (2, 1025, 1025), (2, 600, 3), (3, 60, 1), (4, 60, 30)]
)
def test_it_equals_a_loop(rng, form, dtype, states, time, times):
    if time > 600 and "reference" in form.__name__:
        time = times = 65
    x, system, state = given(rng, (2,), (2,), time, states, times, dtype)
    y, after = form(x, system, state)
    for row in range(2):
        expected, last = loop(x[row].double().numpy(), system[row].numpy(), state[row].numpy())
        assert deviation(y[row], expected) < bound(dtype)
        assert deviation(after[row], last) < 1e-12


def test_a_constant_section_equals_sosfilt(rng):
    b, a = signal.butter(2, 0.1)
    x, zi = rng.standard_normal((3, 2000)), rng.standard_normal((1, 3, 2))
    expected, zf = signal.sosfilt(np.concatenate([b, a])[None], x, zi=zi)
    m = [[-a[1], 1, b[1] - a[1] * b[0]], [-a[2], 0, b[2] - a[2] * b[0]], [1, 0, b[0]]]
    y, after = linear(torch.from_numpy(x), torch.tensor([m]).double(), torch.from_numpy(zi[0]))
    assert deviation(y, expected) < 1e-12
    assert deviation(after, zf[0]) < 1e-12


# --- the saturated loop ---------------------------------------------------------------------------------------


def looped(rng, leading=(2,), time=50, states=4, times=1):
    """Return the arguments of the saturated loop, one feedback and drive for each channel."""
    x, system, state = given(rng, leading, (), time, states, times)
    system[..., -1, -1] = system[..., -1, -1].abs()
    k, d = torch.from_numpy(rng.uniform(0.05, 0.3, leading)), torch.from_numpy(rng.uniform(0.5, 3, leading))
    return 3 * x, system, k, d, state


@pytest.mark.parametrize("form", SATURATED_FORMS)
@pytest.mark.parametrize("times", [1, 50])
def test_the_saturated_loop_solves_its_equation(rng, form, times):
    x, system, k, d, state = looped(rng, times=times)
    y, after = form(x, system, k, d, state)
    for row in range(2):
        expected, last = loop(x[row].numpy(), system.numpy(), state[row].numpy(), (float(k[row]), float(d[row])))
        assert deviation(y[row], expected) < 1e-11
        assert deviation(after[row], last) < 1e-11


@pytest.mark.parametrize("gain", [1e-6, 1.0, 1e3])
def test_loops_of_any_gain_solve_their_equation(rng, gain):
    """Tables end at a gain of 12 around the loop, and at inputs where tanh is 1."""
    system = torch.diag(torch.tensor([0.5, 1.0], dtype=torch.float64))[None]
    feedback = torch.tensor([0.0, 1e-3, 0.7, 4.0, 11.99, 12.0, 12.01, 1e4], dtype=torch.float64)
    x = gain * torch.from_numpy(rng.standard_normal((8, 1025)))
    h, _ = saturated(x, system, feedback, torch.ones(()).double(), None)
    assert h.abs().max() <= 1
    inner = h.abs() < 0.99
    residual = torch.atanh(h) + feedback[:, None] * h - x
    assert float((residual / (1 + feedback[:, None]))[inner].abs().max()) < 1e-14 * max(1, gain * 1e-2)
    assert torch.equal(h[0], saturated(x[:1], system, feedback[:1], torch.ones(()).double(), None)[0][0])


@pytest.mark.parametrize("form", SATURATED_FORMS)
def test_without_drive_the_loop_is_linear(rng, form):
    x, system, k, d, _ = looped(rng)
    found, _ = form(x, system, k, torch.zeros_like(d), None)
    nearly, _ = form(x, system, k, torch.full_like(d, 1e-7), None)
    assert deviation(found, nearly.numpy()) < 1e-10


# --- gradients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize(("leading", "own"), [((), ()), ((2, 1), (3,))])
def test_gradients_of_systems_that_serve_several_samples(rng, check, leading, own):
    tensors = [tensor.requires_grad_() for tensor in given(rng, leading, own, 6, 2, 2)]
    forward = {} if check is gradgradcheck else {"check_forward_ad": True, "check_batched_grad": True}
    assert check(linear, tensors, fast_mode=True, **forward)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("time", "times"), [(1, 1), (1025, 1025), (1200, 3), (1300, 1)])
def test_native_gradient_equals_the_definition(rng, dtype, time, times):
    x, system, state = given(rng, (3,), (), time, 2, times, dtype)
    grad_y, grad_after = torch.from_numpy(rng.standard_normal((3, time))).to(dtype), state.flip(0)
    native = torch.ops.torchfx_ext.state_space_backward(grad_y, grad_after, x, system, state, True, True, True)
    definition = gradient.backward(linear, (x, system, state), (grad_y, grad_after))
    for found, expected in zip(native, definition, strict=True):
        assert found.dtype == expected.dtype
        assert deviation(found, expected.numpy()) < (2e-7 if found.dtype == torch.float32 else 1e-12)
    for needs in ((True, False, False), (False, True, False), (False, False, True)):
        partial = torch.ops.torchfx_ext.state_space_backward(grad_y, grad_after, x, system, state, *needs)
        for found, expected, needed in zip(partial, native, needs, strict=True):
            assert torch.equal(found, expected) if needed else found.numel() == 0


# --- misuse ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("system", "state", "error", "message"),
    [
        (torch.zeros(1, 3, 3), None, ArgumentTypeError, "system must be float64, got torch.float32"),
        (torch.zeros(3, 3).double(), None, ArgumentError, r"shape \(..., times, n \+ 1, n \+ 1\) .* got \(3, 3\)"),
        (torch.zeros(1, 3, 2).double(), None, ArgumentError, r"got \(1, 3, 2\)"),
        (torch.zeros(1, 6, 6).double(), None, ArgumentError, r"1 to 4 states n, got \(1, 6, 6\)"),
        (torch.zeros(4, 3, 3).double(), None, ArgumentError, "divide the signal evenly: got 4 for 10 samples"),
        (torch.zeros(5, 1, 3, 3).double(), None, ArgumentError, r"must broadcast .* \(2,\) of x, \(5,\) of system"),
        (torch.full((1, 2, 2), torch.inf).double(), None, ArgumentError, r"system must be finite, got inf at index"),
        (
            torch.zeros(1, 3, 3).double(),
            torch.zeros(2, 3).double(),
            ArgumentError,
            r"state must have the shape \(2, 2\)",
        ),
    ],
)
def test_bad_arguments_raise(form, system, state, error, message):
    with pytest.raises(error, match=message):
        form(torch.zeros(2, 10), system, state)


@pytest.mark.parametrize("form", SATURATED_FORMS)
def test_bad_arguments_of_the_loop_raise(form):
    system, one = torch.zeros(1, 3, 3).double(), torch.ones(()).double()
    with pytest.raises(ArgumentTypeError, match=r"drive must be float64, got torch\.float32"):
        form(torch.zeros(2, 10), system, one, torch.ones(()), None)
    with pytest.raises(ArgumentError, match=r"must broadcast .* \(3,\) of feedback, \(\) of drive"):
        form(torch.zeros(2, 10), system, one.expand(3), one, None)
