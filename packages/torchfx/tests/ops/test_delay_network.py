"""Networks of delay lines: their equations in a loop, the native kernel against it, and derivatives."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from operators import forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx.design.biquad import biquad
from torchfx.errors import ArgumentError, ArgumentTypeError

network = _ops.delay_network_forward
FORMS = forms("delay_network_forward")


def given(rng, leading, own, delays, time, sections=0, inputs=2, outputs=3, dtype=torch.float64):
    """Return signal, system, sections and both states of a network that decays; its first line has no filter."""
    n, shape = len(delays), np.broadcast_shapes(leading, own)
    system = rng.standard_normal((*own, n + outputs, n + inputs))
    system[..., :n, :n] *= 0.5 / n
    sos = None
    if sections:
        rows = [biquad(rng.uniform(500, 15_000), 0.6, 0.0, 48_000, "lowpass") for _ in range(n * sections)]
        sos = torch.cat(rows).reshape(n, sections, 6)
        sos[0] = torch.tensor([1.0, 0, 0, 1, 0, 0])
    lines, state = rng.standard_normal((*shape, sum(delays))), rng.standard_normal((sections, *shape, n, 2))
    state[..., 0, :] = 0
    x, *rest = (
        torch.from_numpy(each) for each in (rng.standard_normal((*leading, inputs, time)), system, lines, state)
    )
    return x.to(dtype), rest[0], sos, rest[1], rest[2]


def loop(x, delays, system, sos, lines, state, filter_first):
    """Step the equations for one signal (inputs, time), in NumPy."""
    n, state = len(delays), None if sos is None else np.array(state)
    held = [list(each) for each in np.split(np.array(lines), np.cumsum(delays)[:-1])]
    outputs = []

    def filtered(values):
        for k in range(0 if sos is None else sos.shape[1]):
            b0, b1, b2, _, a1, a2 = sos[:, k].T
            y = b0 * values + state[k, :, 0]
            state[k, :, 0] = b1 * values - a1 * y + state[k, :, 1]
            state[k, :, 1] = b2 * values - a2 * y
            values = y
        return values

    for sample in x.T:
        r = np.array([line.pop(0) for line in held])
        outputs.append(system[n:] @ np.concatenate([r, sample]))
        s = system[:n, :n] @ filtered(r) if filter_first else filtered(system[:n, :n] @ r)
        for line, value in zip(held, s + system[:n, n:] @ sample, strict=True):
            line.append(value)
    return np.array(outputs).T, np.concatenate(held), state


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("delays", "time", "sections"), [([1], 1, 0), ([300, 5, 7], 1025, 2), ([400] * 9, 1025, 1)])
def test_it_equals_a_loop(rng, form, filter_first, dtype, delays, time, sections):
    x, system, sos, lines, state = given(rng, (), (), delays, time, sections, dtype=dtype)
    y, *after = form(x, delays, system, sos, lines, state, filter_first)
    arrays = (None if each is None else each.double().numpy() for each in (system, sos, lines, state))
    expected, *last = loop(x.double().numpy(), delays, *arrays, filter_first)
    assert deviation(y, expected) < bound(dtype)
    assert deviation(after[0], last[0]) < 1e-12
    assert sections == 0 or deviation(after[1], last[1]) < 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("sections", [0, 1])
def test_sums_that_share_terms_equal_a_loop(rng, form, filter_first, sections):
    """Four lines count alike for every sum, and so do two others and the inputs."""
    delays = [300, 5, 7, 40, 40, 41, 9]
    x, system, sos, lines, state = given(rng, (), (), delays, 1025, sections)
    for first, *alike in ((1, 2, 3, 4), (0, 6), (7, 8)):
        system[:, alike] = system[:, [first]]
    y, *after = form(x, delays, system, sos, lines, state, filter_first)
    arrays = (None if each is None else each.numpy() for each in (system, sos, lines, state))
    expected, *last = loop(x.numpy(), delays, *arrays, filter_first)
    assert deviation(y, expected) < 1e-12
    assert deviation(after[0], last[0]) < 1e-12


LEARNED = {
    # name: leading dimensions of signal and system, delays, samples, sections
    "no filters": ((3,), (), [7, 1, 40], 60, 0),
    "filters": ((), (), [30, 5, 7], 101, 2),
    "lines longer than the signal": ((2,), (1,), [90, 130], 33, 1),
    "a system for each example": ((2, 1), (2, 3), [11, 4], 50, 1),
}


@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("learned", ["all", "signal"])
@pytest.mark.parametrize("followed", ["output", "lines after"])
@pytest.mark.parametrize("name", LEARNED)
def test_gradients_by_the_adjoint_equal_those_of_its_definition(rng, name, followed, learned, filter_first):
    """The definition is differentiated block by block; a gradient that is differentiated again is taken from it."""
    leading, own, delays, time, sections = LEARNED[name]
    x, system, sos, lines, state = given(rng, leading, own, delays, time, sections)
    tensors = [x, system, sos, lines] if learned == "all" else [x, lines]
    tensors = [tensor.requires_grad_() for tensor in tensors if tensor is not None]
    results = network(x, delays, system, sos, lines, state, filter_first)[:2]
    weights = [torch.from_numpy(rng.standard_normal(result.shape)) for result in results]
    chosen = slice(0, 1) if followed == "output" else slice(0, 2)
    total = sum((result * weight).sum() for result, weight in zip(results[chosen], weights[chosen], strict=True))
    found = torch.autograd.grad(total, tensors, retain_graph=True)
    expected = torch.autograd.grad(total, tensors, create_graph=True)
    for gradient, by_blocks in zip(found, expected, strict=True):
        assert deviation(gradient, by_blocks.detach().numpy()) < 1e-11


def test_a_gradient_runs_the_network_and_not_its_blocks(rng):
    """A second of a reverberator: blocks would be thousands of operators."""
    x, system, sos, _, _ = given(rng, (), (), [400, 17], 48_000, 1, dtype=torch.float32)
    seen = []

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    y, *_ = network(x.requires_grad_(), [400, 17], system.requires_grad_(), sos.requires_grad_())
    with Counting():
        y.square().sum().backward()
    assert seen.count("delay_network_forward") == 2
    assert len(seen) < 100


def test_an_all_pass_keeps_the_energy(rng):
    g, delay = 0.7, 113
    x = torch.zeros(1, 20_000, dtype=torch.float64)
    x[0, 0] = 1
    y, *_ = network(x, [delay], torch.tensor([[g, 1.0], [1 - g * g, -g]], dtype=torch.float64))
    assert abs(float(y.square().sum()) - 1) < 1e-12
    expected = torch.zeros_like(y)
    expected[0, 0] = -g
    for k in range(1, 20_000 // delay + 1):
        expected[0, k * delay] = (1 - g * g) * g ** (k - 1)
    assert torch.allclose(y, expected, rtol=0, atol=1e-15)


def test_tails_end_in_zeros_and_never_in_subnormal_numbers():
    """Samples would be subnormal as floats after 750 rounds, and the line's after 6000."""
    x = torch.zeros(1, 5000)
    x[0, 0] = 1
    y, lines, _ = network(x, [1], torch.tensor([[0.89, 1.0], [1.0, 0.0]], dtype=torch.float64))
    smallest = torch.finfo(torch.float32).tiny
    assert not bool(((y != 0) & (y.abs() < smallest)).any())
    assert float(y[0, 700]) > 0
    assert float(network(x * 0, [1], torch.tensor([[0.8, 1.0], [1.0, 0.0]], dtype=torch.float64), lines=lines)[1]) == 0


@pytest.mark.parametrize("form", FORMS)
def test_bad_arguments_raise(form):
    x, system, sos = torch.zeros(1, 10), torch.zeros(3, 3).double(), torch.zeros(2, 1, 6).double()
    for arguments, error, message in [
        ((x[0], [2, 2], system), ArgumentError, r"x must have the shape \(\.\.\., inputs, time\), got \(10,\)"),
        ((x, [2, 0], system), ArgumentError, r"delays must hold a whole number >= 1 for each line, got \[2, 0\]"),
        ((x, [], system), ArgumentError, "delays must hold"),
        ((x, [2, 2], system.float()), ArgumentTypeError, r"system must be float64, got torch\.float32"),
        ((x, [2], system), ArgumentError, r"for 1 lines and 1 inputs, got \(3, 3\)"),
        ((x, [2, 2], system, sos[:1]), ArgumentError, r"sos must have the shape \(\.\.\., 2 lines, .* got \(1, 1, 6\)"),
        ((x.expand(2, 1, 10), [2, 2], system.expand(3, 3, 3)), ArgumentError, r"got \(2,\) of x, \(3,\) of system"),
        ((x, [2, 2], system, None, torch.zeros(5).double()), ArgumentError, r"lines must have the shape \(4,\)"),
    ]:
        with pytest.raises(error, match=message):
            form(*arguments)
    unstable = torch.tensor([1.0, 0, 0, 1, -2, 0]).double().expand(2, 1, 6)
    with pytest.raises(ArgumentError, match="unstable"):
        form(x, [2, 2], system, unstable)
    if "cpu" in form.__name__:
        with pytest.raises(ArgumentError, match="system must be finite, got inf"):
            form(x, [2, 2], system + torch.inf)
