"""FIR and DesignableFIR."""

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from oracle import deviation
from torchfx.errors import ArgumentError, ArgumentTypeError


def test_filters_as_scipy_does(rng):
    x = rng.standard_normal((2, 3000))
    taps = signal.firwin(101, 1000, fs=44100)
    exact = signal.lfilter(taps, 1, x)
    assert deviation(fx.filter.DesignableFIR(1000, 101, fs=44100)(torch.from_numpy(x)), exact) < 1e-12
    assert deviation(fx.filter.FIR(taps)(torch.from_numpy(x).float()), exact) < 2e-7


@pytest.mark.parametrize("taps", [[1, 2, 3], (0.5, 0.25), np.array([1, 2], np.int16), torch.tensor([1.0, 2.0])])
def test_taps_come_in_many_forms(taps):
    module = fx.filter.FIR(taps)
    assert module.b.dtype == torch.float64
    assert np.array_equal(module.b, np.asarray(taps, np.float64))
    assert module.a.tolist() == [1.0]


def test_taps_stay_exact_and_travel_in_the_state_dict():
    taps = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64)
    module = fx.filter.FIR(taps).half()
    assert torch.equal(module.b, taps)
    twin = fx.filter.FIR([0.0, 0.0])
    twin.load_state_dict(module.state_dict())
    assert torch.equal(twin.b, taps)


def test_given_taps_are_copied():
    taps = torch.ones(2, dtype=torch.float64)
    module = fx.filter.FIR(taps)
    taps.zero_()
    assert module.b.tolist() == [1.0, 1.0]


def test_the_tensor_given_is_the_tensor_learned(generator):
    x = torch.randn(2, 50, generator=generator)
    leaf = torch.ones(3, requires_grad=True)
    fx.filter.FIR(leaf)(x).square().sum().backward()
    assert float(leaf.grad.abs().min()) > 0
    parameter = torch.nn.Parameter(torch.ones(3))
    assert next(iter(fx.filter.FIR(parameter).parameters())) is parameter
    by_transform = torch.func.grad(lambda t: fx.filter.FIR(t)(x).square().sum())(torch.ones(3))
    assert torch.allclose(by_transform, leaf.grad)


@pytest.mark.parametrize(
    ("taps", "error", "message"),
    [
        ([], ArgumentError, r"b must have the shape \(..., n >= 1\), got \(0,\)"),
        ([1.0, float("nan")], ArgumentError, "b must hold finite numbers"),
        ([[1.0], [1.0, 2.0]], ArgumentError, r"b must have the shape \(..., n >= 1\)"),
        (torch.nn.Parameter(torch.ones(2, dtype=torch.complex64)), ArgumentTypeError, "b must be real"),
        (["a"], ArgumentTypeError, "b must hold real numbers"),
        (torch.ones(2, dtype=torch.complex64), ArgumentTypeError, "b must be real"),
    ],
)
def test_bad_taps_raise(taps, error, message):
    with pytest.raises(error, match=message):
        fx.filter.FIR(taps)


def test_bad_parameters_raise_at_construction():
    with pytest.raises(ArgumentError, match=r"\(0, 22050\) Hz, got 30000"):
        fx.filter.DesignableFIR(30000, 101, fs=44100)
    with pytest.raises(ArgumentError, match="num_taps must be odd"):
        fx.filter.DesignableFIR(1000, 100, pass_zero=False)
    with pytest.raises(ArgumentError, match="window must be one"):
        fx.filter.DesignableFIR(1000, 101, fs=44100, window="hammock")
    with pytest.raises(ArgumentError, match="window must be one"):
        fx.filter.DesignableFIR(1000, 101, window="hammock")


@pytest.mark.parametrize("cls", [fx.filter.DesignableFIR, fx.filter.MinimumPhaseFIR])
def test_scipys_order_of_arguments_is_warned_of(cls):
    with pytest.warns(UserWarning, match=r"takes the cutoff before the number of taps.* cutoff=101 and num_taps=1000"):
        cls(101, 1000)
    with pytest.raises(ArgumentTypeError, match=r"num_taps must be a whole number >= 1, got 1000\.0"):
        cls(101, 1000.0)
    for likely in ((50, 2001), (1000, 64), (50.5, 64)):
        assert cls(*likely).num_taps == likely[1]


def test_given_taps_compile_without_a_rate(rng):
    x = torch.from_numpy(rng.standard_normal((1, 100)))
    module = fx.filter.FIR([1.0, 2.0])
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), module(x))


def test_other_taps_for_one_call_are_heard(rng):
    """Their place in memory is that of the taps before, but they are others."""
    chain = fx.filter.FIR([1.0, 0.0]) | fx.effect.Gain(0.5)
    x = torch.from_numpy(rng.standard_normal((1, 10)))
    for i in range(20):
        y = torch.func.functional_call(chain, {"0.b": torch.full((2,), float(i), dtype=torch.float64)}, (x,))
        assert torch.allclose(y, fx.filter.FIR([0.5 * i, 0.5 * i])(x))


def test_filters_made_in_inference_mode_run(rng):
    x = torch.from_numpy(rng.standard_normal((1, 100)))
    with torch.inference_mode():
        chain = fx.filter.FIR([1.0, 2.0]) | fx.effect.Gain(0.5)
        first = chain(x)
        chain[0].taps.mul_(2)
        assert torch.allclose(chain(x), 2 * first)


def test_text_shows_the_parameters():
    assert str(fx.filter.FIR([1.0, 2.0])) == "FIR(2 taps)"
    module = fx.filter.DesignableFIR([300, 3400], 101, window="hann", pass_zero=False)
    assert str(module) == "DesignableFIR(cutoff=[300, 3400], num_taps=101, window='hann', pass_zero=False)"
