"""Delays between samples."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from torchfx.errors import ArgumentError
from torchfx.filter import FractionalDelay


@pytest.mark.parametrize("delay", [15.0, 20.25, 47.9, 1000.5])
@pytest.mark.parametrize("frequency", [0.01, 0.1, 0.25, 0.375])
def test_a_sine_comes_later(delay, frequency):
    """In cycles per sample; 0.375 is three quarters of half the rate."""
    turns = 2 * math.pi * frequency * torch.arange(1200, dtype=torch.float64)
    y = FractionalDelay(delay)(torch.sin(turns))
    assert float((y - torch.sin(turns - 2 * math.pi * frequency * delay))[1050:].abs().max()) < 1e-4


def test_whole_delays_are_exact():
    x = torch.randn(100, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(FractionalDelay(17.0)(x)[17:], x[:-17], atol=1e-7)


def test_a_delay_is_learned():
    x = torch.randn(2, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    delay = torch.tensor([[17.3], [20.7]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda delay: FractionalDelay(delay)(x), delay)
    signal = torch.nn.functional.conv1d(torch.randn(1, 1, 500), torch.ones(1, 1, 9) / 9, padding=4)[0]
    target, learned = FractionalDelay(22.4)(signal), FractionalDelay(torch.nn.Parameter(torch.tensor(21.0)))
    optimizer = torch.optim.Adam(learned.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        (learned(signal) - target).square().mean().backward()
        optimizer.step()
    assert float(learned.delay.detach()) == pytest.approx(22.4, abs=0.1)


def test_misuse():
    with pytest.raises(ArgumentError, match=r"delay must lie in \[15, 100000000\], got 3"):
        FractionalDelay(3.0)
    with pytest.raises(ArgumentError, match=r"delay must lie in \[15, max_delay\] = \[15, 64\], got 100"):
        FractionalDelay(torch.tensor([20.0, 100.0]))


def test_a_long_delay_needs_no_taps_for_its_whole_samples():
    module = FractionalDelay(5e7 + 0.5)
    system = module.lti(None)
    assert system.taps.shape[-1] == 32
    assert system.delay == 50_000_000 - 15
    torch.testing.assert_close(system.taps, FractionalDelay(20.5).b[5:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["delay", "max_delay"])
def test_delays_have_an_end(name):
    with pytest.raises(ArgumentError, match=f"{name} must"):
        FractionalDelay(**{name: 10**9})
