"""The all-pole filter: SciPy's lfilter for constant coefficients, a loop on paper for those of each sample."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck, gradgradcheck

from operators import forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx._ops.allpole import gradient
from torchfx.errors import ArgumentError, ArgumentTypeError

FORMS = forms("allpole_forward")
allpole = _ops.operators["allpole_forward"]


def loop(x, a, past):
    """y[t] = x[t] - sum of a[t, k] y[t-k], for one channel, in NumPy."""
    y = list(past[::-1])
    for t, sample in enumerate(x):
        y.append(sample - sum(a[t % len(a), k] * y[-1 - k] for k in range(a.shape[1])))
    return np.array(y[len(past) :]), np.array(y[::-1][: len(past)])


def coefficients(rng, *shape):
    """Coefficients of filters that are stable however they change: their absolute values sum up to less than 1."""
    a = rng.uniform(-1, 1, shape)
    return 0.95 * a / np.maximum(1, np.abs(a).sum(-1, keepdims=True))


def given(rng, leading, own, time, order, per_sample=True, dtype=torch.float64):
    """Return signal, coefficients and past outputs."""
    x = torch.from_numpy(rng.standard_normal((*leading, time))).to(dtype)
    a = torch.from_numpy(coefficients(rng, *own, time if per_sample else 1, order))
    past = torch.from_numpy(rng.standard_normal((*np.broadcast_shapes(leading, own), order)))
    return x, a, past


@pytest.mark.parametrize("order", [1, 2, 3, 7, 12, 50])
@pytest.mark.parametrize("time", [1, 2, 9, 1023, 2049])
def test_constant_coefficients_equal_lfilter(rng, order, time):
    x, a, past = given(rng, (3,), (), time, order, per_sample=False)
    b, whole = np.ones(1), np.concatenate([[1.0], a[0]])
    zi = np.stack([signal.lfiltic(b, whole, row) for row in past.numpy()])
    expected, zf = signal.lfilter(b, whole, x, zi=zi)
    y, after = allpole(x, a, past)
    assert deviation(y, expected) < 1e-12
    assert deviation(np.stack([signal.lfiltic(b, whole, row) for row in after.numpy()]), zf) < 1e-12
    y32, _ = allpole(x.float(), a, past)
    assert y32.dtype == torch.float32
    assert deviation(y32, signal.lfilter(b, whole, x.float().double(), zi=zi)[0]) < 2e-7


def test_a_resonance_at_20_hz_rings_for_as_long_as_in_long_double():
    a = signal.butter(2, 20, fs=48_000)[1]
    x = np.zeros(20_000)
    x[0] = 1
    y, _ = allpole(torch.from_numpy(x), torch.from_numpy(a[None, 1:]), None)
    wide = (values.astype(np.longdouble) for values in (np.ones(1), a, x))
    assert deviation(y, signal.lfilter(*wide)) < 1e-10


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("order", [1, 2, 4, 5, 13])
@pytest.mark.parametrize("time", [1, 3, 130])
def test_coefficients_of_each_sample_equal_a_loop(rng, form, dtype, order, time):
    x, a, past = given(rng, (2,), (2,), time, order, dtype=dtype)
    y, after = form(x, a, past)
    for row in range(2):
        expected, last = loop(x[row].double().numpy(), a[row].numpy(), past[row].numpy())
        assert deviation(y[row], expected) < bound(dtype)
        assert deviation(after[row], last) < 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("per_sample", [True, False])
def test_nan_spreads_to_what_follows_in_its_channel_only(rng, form, per_sample):
    x, a, _ = given(rng, (3,), (), 300, 3, per_sample)
    clean, _ = form(x, a, None)
    x[1, 133] = float("inf")
    y, _ = form(x, a, None)
    assert torch.allclose(y[[0, 2]], clean[[0, 2]], rtol=0, atol=1e-12)
    assert torch.allclose(y[1, :133], clean[1, :133], rtol=0, atol=1e-12)
    assert not y[1, 133:].isfinite().any()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("channels", [4, 9, 17])
@pytest.mark.parametrize(("dtype", "a_dtype"), [(torch.float32, torch.float64), (torch.float64, torch.float32)])
def test_many_channels_equal_each_alone(rng, order, channels, dtype, a_dtype):
    """Channels in lanes: whole vectors of samples, and some that are left over; lanes without a channel."""
    for time in (3, 8, 2061):
        x, a, past = given(rng, (channels,), (channels,), time, order, dtype=dtype)
        a, grad_y, grad_after = a.to(a_dtype), x.flip(0), past.flip(0)
        y, after = allpole(x, a, past)
        grads = torch.ops.torchfx_ext.allpole_backward(grad_y, grad_after, y, x, a, past, True, True, True)
        for c in range(channels):
            expected, last = allpole(x[c], a[c], past[c])
            assert deviation(y[c], expected.numpy()) < bound(dtype)
            assert deviation(after[c], last.numpy()) < 1e-12
            alone = torch.ops.torchfx_ext.allpole_backward(
                grad_y[c], grad_after[c], y[c], x[c], a[c], past[c], True, True, True
            )
            for found, one in zip(grads, alone, strict=True):
                assert deviation(found[c], one.numpy()) < bound(found.dtype)


# --- gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("per_sample", [True, False])
def test_gradients_of_fewer_samples_than_coefficients(rng, check, per_sample):
    tensors = [tensor.requires_grad_() for tensor in given(rng, (2,), (), 2, 5, per_sample)]
    assert check(allpole, tensors, fast_mode=True)
    assert check(lambda x, a: allpole(x, a, None)[0], tensors[:2], fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("a_dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("per_sample", [True, False])
@pytest.mark.parametrize(("time", "order"), [(1, 2), (3, 6), (1025, 2), (2100, 11)])
def test_native_gradient_equals_the_definition(rng, dtype, a_dtype, per_sample, time, order):
    x, a, past = given(rng, (3,), (), time, order, per_sample, dtype)
    a = a.to(a_dtype)
    grad_y, grad_after = torch.from_numpy(rng.standard_normal((3, time))).to(dtype), past.flip(0)
    y, _ = allpole(x, a, past)
    native = torch.ops.torchfx_ext.allpole_backward(grad_y, grad_after, y, x, a, past, True, True, True)
    definition = gradient.backward(allpole, (x, a, past), (grad_y, grad_after))
    for found, expected in zip(native, definition, strict=True):
        assert found.dtype == expected.dtype
        rounded = torch.float32 in {dtype, found.dtype}  # outputs that are read again are rounded too
        assert deviation(found, expected.numpy()) < (2e-7 if rounded else 1e-12)
    for needs in ((True, False, False), (False, True, False), (False, False, True)):
        partial = torch.ops.torchfx_ext.allpole_backward(grad_y, grad_after, y, x, a, past, *needs)
        for found, expected, needed in zip(partial, native, needs, strict=True):
            assert torch.equal(found, expected) if needed else found.numel() == 0


def test_transforms_and_compilation(rng):
    x, a, _ = given(rng, (3,), (3,), 20, 2)

    def energy(x, a):
        return allpole(x, a, None)[0].square().sum()

    per_example = torch.func.vmap(torch.func.grad(energy, argnums=1))(x, a)
    weights = a.clone().requires_grad_()
    energy(x, weights).backward()
    assert torch.allclose(per_example, weights.grad)
    compiled = torch.compile(energy, fullgraph=True, backend="aot_eager")
    assert torch.allclose(torch.autograd.grad(compiled(x, weights), weights)[0], weights.grad)


# --- misuse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("a", "past", "error", "message"),
    [
        (torch.zeros(1, 2).half(), None, ArgumentTypeError, "a must be float32 or float64, got torch.float16"),
        (torch.zeros(2), None, ArgumentError, r"a must have the shape \(..., 1 or time, order >= 1\) .* 10 samples"),
        (torch.zeros(9, 2), None, ArgumentError, r"a must have the shape .* got \(9, 2\)"),
        (torch.zeros(10, 0), None, ArgumentError, r"a must have the shape .* got \(10, 0\)"),
        (torch.zeros(5, 1, 2), None, ArgumentError, r"broadcast with the signal's \(2,\), got \(5,\)"),
        (torch.full((1, 2), torch.nan), None, ArgumentError, r"a must be finite, got nan at index \[0, 0\]"),
        (torch.zeros(1, 2), torch.zeros(2, 3).double(), ArgumentError, r"past must have the shape \(2, 2\)"),
    ],
)
def test_bad_arguments_raise(form, a, past, error, message):
    with pytest.raises(error, match=message):
        form(torch.zeros(2, 10), a, past)
