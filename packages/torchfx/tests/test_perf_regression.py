"""Gates that no noise can move: how often a chain crosses into native code."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchfx as fx

FS = 48000


@pytest.fixture
def wave(generator):
    return fx.Wave(torch.randn(2, 2000, generator=generator), FS)


def cascade(depth):
    return [fx.filter.HiButterworth(20 + i) if i % 2 else fx.filter.LoChebyshev1(9000 - i) for i in range(depth)]


def operators(run):
    """Return the operators that a call dispatches, by name, without those that they call.

    The mark of a second filter on the same samples is no operator: it has no namespace.
    """
    run()  # the plan is made
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        run()
    found = [event for event in seen.events() if "::" in event.name]
    return [event.name for event in found if event.cpu_parent is None or "::" not in event.cpu_parent.name]


@pytest.mark.parametrize("depth", [1, 2, 5, 10, 20])
def test_a_fused_cascade_is_one_dispatch_and_nothing_else(wave, depth):
    chain = fx.FilterChain(*cascade(depth))
    assert operators(lambda: wave | chain) == ["torchfx_ext::sos_forward"]


@pytest.mark.parametrize("depth", [2, 5])
def test_unfused_filters_are_one_dispatch_each(wave, depth):
    def run():
        y = wave
        for module in cascade(depth):
            y = y | module

    native = [name for name in operators(run) if name.startswith("torchfx_ext")]
    assert native == ["torchfx_ext::sos_forward"] * depth


def test_a_static_gain_between_iirs_adds_nothing(wave):
    first, second = cascade(2)
    chain = first | fx.effect.Gain("-3dB") | second | fx.effect.Gain(2.0)
    assert operators(lambda: wave | chain) == ["torchfx_ext::sos_forward"]


def test_neighbouring_firs_are_one_dispatch(wave):
    chain = fx.FilterChain(*(fx.filter.DesignableFIR(1000 + i, 101 + i) for i in range(5)), fx.effect.Gain(0.5))
    assert operators(lambda: wave | chain) == ["torchfx_ext::fir_forward"]


def test_a_second_call_designs_nothing(wave, monkeypatch):
    chain = fx.FilterChain(*cascade(4), fx.filter.DesignableFIR(1000, 101))
    first = wave | chain

    def design(*args, **kwargs):
        raise AssertionError("designed again")

    for name in ("butter", "cheby1", "firwin"):
        monkeypatch.setattr(f"scipy.signal.{name}", design)
    monkeypatch.setattr("torchfx.plan.cache.lower", design)
    assert torch.equal((wave | chain).ys, first.ys)
