"""SOS and IIR: coefficients of your own."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck

import torchfx as fx
from oracle import deviation
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.filter import IIR, SOS


@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy, np.ndarray.tolist])
def test_sections_filter_as_scipys_sosfilt(rng, form):
    sos, x = signal.cheby1(12, 0.5, 200, fs=48_000, output="sos"), rng.standard_normal((2, 1025))
    module, exact = SOS(form(sos)), signal.sosfilt(sos, x)
    assert deviation(module(torch.from_numpy(x)), exact) < 1e-10  # what sosfilt itself loses
    assert deviation(module(torch.from_numpy(x).float()), exact) < 2e-7
    assert np.array_equal(module.sos, sos)
    b, a = signal.sos2tf(sos)
    assert np.allclose(module.b, b, rtol=1e-9, atol=0)
    assert np.allclose(module.a, a, rtol=1e-9, atol=0)


DENOMINATORS = {
    1: [2.0],
    2: [2.0, -1.0],
    3: [1.0, -1.6, 0.7],
    4: np.poly([0.9, 0.5 + 0.3j, 0.5 - 0.3j]).real,
    9: signal.butter(8, 0.3)[1],
}


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 40])
@pytest.mark.parametrize("poles", DENOMINATORS)
def test_a_transfer_function_filters_as_scipys_lfilter(rng, taps, poles):
    b, a, x = rng.standard_normal(taps), DENOMINATORS[poles], rng.standard_normal((2, 500))
    b[0] *= taps != 4  # a numerator may begin with zero: a delay
    exact = signal.lfilter(b, a, x)
    assert deviation(IIR(b, a)(torch.from_numpy(x)), exact) < 1e-12
    assert deviation(IIR(b, a)(torch.from_numpy(x).float()), exact) < 2e-7


@pytest.mark.parametrize("order", [2, 5])
def test_one_filter_per_example(rng, order):
    designs = [signal.butter(order, edge) for edge in (0.1, 0.3, 0.6)]
    b, a = (np.array([design[i] for design in designs])[:, None] for i in (0, 1))
    x = torch.from_numpy(rng.standard_normal((3, 2, 200)))
    together = IIR(b, a)(x)
    sections = SOS(np.array([signal.butter(order, edge, output="sos") for edge in (0.1, 0.3, 0.6)])[:, None])
    for i, design in enumerate(designs):
        assert deviation(together[i], signal.lfilter(*design, x[i])) < 1e-12
    assert torch.allclose(sections(x), together, atol=1e-12)


def test_coefficients_are_learned(rng):
    x = torch.from_numpy(rng.standard_normal((2, 12)))
    b, a = (torch.tensor(values, dtype=torch.float64, requires_grad=True) for values in ([0.3, 0.2], [2.0, -1.6, 0.7]))
    assert gradcheck(lambda b, a: IIR(b, a)(x), (b, a))
    assert gradcheck(lambda b: IIR(b, [1, -0.5, 0.2, 0.1])(x), b)
    sos = torch.nn.Parameter(torch.tensor([[0.3, 0.2, 0.1, 1.0, -1.6, 0.7]]))
    module = SOS(sos)
    assert next(module.parameters()) is sos
    module(x.float()).square().sum().backward()
    assert float(sos.grad.abs().min()) > 0


def test_a_changed_denominator_is_heard():
    module, x = IIR([1.0], [1.0, 0.0, 0.0, 0.5]), torch.eye(1, 5)
    chain = module | fx.effect.Gain(1.0)
    assert chain(x).tolist()[0] == pytest.approx([1.0, 0.0, 0.0, -0.5, 0.0], abs=1e-15)
    module.load_state_dict({"b": torch.tensor([1.0]), "a": torch.tensor([1.0, 0.0, 0.0, -0.25])})
    assert chain(x).tolist()[0] == pytest.approx([1.0, 0.0, 0.0, 0.25, 0.0], abs=1e-15)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: SOS([1, 0, 0, 1, 0, 0]), ArgumentError, r"sos must have the shape .*, 6\), rows b0 .* got \(6,\)"),
        (lambda: SOS([[1, 0, 0, 1, 0]]), ArgumentError, r"sos must have the shape .* got \(1, 5\)"),
        (lambda: SOS(np.zeros((0, 6))), ArgumentError, r"sos must have the shape .* got \(0, 6\)"),
        (lambda: SOS([[1, 0, 0, 0, 1, 0]]), ArgumentError, "section 0 has a0 = 0"),
        (lambda: SOS([[1, 0, 0, 1, 0, 0], [1, 0, 0, 1, -2, 1]]), ArgumentError, "section 1 is unstable"),
        (lambda: SOS([[1, 0, 0, 1, float("nan"), 0]]), ArgumentError, "sos must hold finite numbers"),
        (lambda: SOS("lowpass"), ArgumentTypeError, "sos must hold real numbers"),
        (lambda: IIR([1], [0, 1]), ArgumentError, r"a must not begin with zero, got a\[0\] = 0"),
        (lambda: IIR([1], [1, -1]), ArgumentError, "a must have its poles inside the unit circle, got one at radius 1"),
        (lambda: IIR([1], [[1, 0.5], [1, -2]]), ArgumentError, "got one at radius 2"),
        (lambda: IIR([1], [1, 0, 0, 0, -1.5]), ArgumentError, "got one at radius 1.1066"),
        (lambda: IIR([], [1]), ArgumentError, r"b must have the shape \(..., n >= 1\)"),
        (lambda: IIR([1], [1, float("inf")]), ArgumentError, "a must hold finite numbers"),
        (
            lambda: IIR([1], torch.tensor([1.0, 0.1, 0.1, 0.1], requires_grad=True)),
            ArgumentError,
            "a can be learned up to order 2, got order 3; learn the sections of SOS instead",
        ),
        (
            lambda: IIR(torch.ones(2, 3), torch.tensor([[1.0, 0.5]] * 3))(torch.zeros(10)),
            ArgumentError,
            r"leading dimensions must broadcast with each other, got \(2,\) of b, \(3,\) of a",
        ),
    ],
)
def test_bad_coefficients_raise(made, error, message):
    with pytest.raises(error, match=message):
        made()
