"""Designs whose cutoff is learned: SciPy's numbers, and gradients."""

import pytest
import torch
from torch.autograd import gradcheck

import torchfx as fx
from torchfx.design import butterworth, chebyshev1
from torchfx.errors import ArgumentError

SIDES = ["lowpass", "highpass"]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("order", range(1, 13))
@pytest.mark.parametrize("cutoff", [20.0, 1000.0, 21_000.0])
def test_numbers_are_scipys(order, side, cutoff):
    learned = torch.tensor(cutoff, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(
        butterworth(learned, order, 48000, side), butterworth(cutoff, order, 48000, side), rtol=1e-9, atol=1e-12
    )
    found, expected = chebyshev1(learned, order, 0.5, 48000, side), chebyshev1(cutoff, order, 0.5, 48000, side)
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("order", [1, 2, 5])
def test_gradients_against_finite_differences(order, side):
    cutoff = torch.tensor(3000.0, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda c: butterworth(c, order, 48000, side), cutoff)
    assert gradcheck(lambda c: chebyshev1(c, order, 1.0, 48000, side), cutoff)


def test_a_filter_learns_the_cutoff_it_should_have(generator):
    x = torch.randn(4, 2000, generator=generator)
    target = fx.filter.LoButterworth(2000, order=4, fs=48000)(x)
    cutoff = torch.nn.Parameter(torch.tensor(4000.0))
    chain = fx.filter.LoButterworth(cutoff, order=4, fs=48000) | fx.effect.Gain(1.0)
    assert [name for name, _ in chain.named_parameters()] == ["0.cutoff"]
    optimizer = torch.optim.Adam(chain.parameters(), lr=50.0)
    for _ in range(200):
        optimizer.zero_grad()
        (chain(x) - target).square().mean().backward()
        optimizer.step()
    assert float(cutoff.detach()) == pytest.approx(2000, rel=0.02)


def test_a_cutoff_a_network_computed_passes_its_gradient_on(generator):
    raw = torch.tensor(0.1, requires_grad=True)
    module = fx.filter.HiButterworth(torch.sigmoid(raw) * 20_000, fs=48000)
    module(torch.randn(100, generator=generator)).square().sum().backward()
    assert float(raw.grad) != 0


@pytest.mark.parametrize("make", [fx.filter.LoButterworth, fx.filter.LoElliptic, fx.filter.LoBessel, fx.filter.Peaking])
def test_compiled_and_exported_filters_follow_what_is_learned(make, generator):
    cutoff = torch.nn.Parameter(torch.tensor(4000.0, dtype=torch.float64))
    tone, x = make(cutoff, fs=48_000), torch.randn(2, 300, generator=generator)
    torch._dynamo.reset()
    compiled = torch.compile(tone, fullgraph=True, backend="aot_eager")
    exported = torch.export.export(tone, (x,)).module()
    for value in (4000.0, 2000.0):
        for parameter in (cutoff, *exported.parameters()):
            parameter.data.fill_(value)
        expected = tone(x)
        assert torch.allclose(compiled(x), expected, atol=1e-6)
        assert torch.allclose(exported(x), expected, atol=1e-6)
        by_cutoff = [torch.autograd.grad(y.square().mean(), cutoff)[0] for y in (compiled(x), expected)]
        assert torch.allclose(*by_cutoff, rtol=1e-5)


def test_a_learned_cutoff_is_shown():
    cutoff = torch.nn.Parameter(torch.tensor(4000.0))
    chain = fx.filter.LoButterworth(cutoff, fs=48_000) | fx.filter.HiChebyshev1(cutoff, fs=48_000)
    assert str(chain[0]) == "LoButterworth(cutoff=4000, order=2, fs=48000)"
    assert "HiChebyshev1(cutoff=4000, order=2, ripple=0.5, fs=48000)" in str(chain.plan())
    assert str(chain.to("meta")[0]) == "LoButterworth(cutoff=?, order=2, fs=48000)"


def test_a_learned_cutoff_out_of_range_raises():
    module = fx.filter.LoButterworth(torch.nn.Parameter(torch.tensor(1000.0)), fs=48000)
    with torch.no_grad():
        module.cutoff.fill_(25_000)
    with pytest.raises(ArgumentError, match=r"\(0, 24000\) Hz, got 25000"):
        module(torch.zeros(10))
