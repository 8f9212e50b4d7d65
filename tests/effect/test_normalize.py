"""Normalize."""

import pytest
import torch

import torchfx as fx
from torchfx.errors import ArgumentError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_peak_is_reached_and_the_balance_kept(generator, dtype):
    x = torch.randn(2, 1000, dtype=dtype, generator=generator) * torch.tensor([[0.1], [3.0]], dtype=dtype)
    y = fx.effect.Normalize(peak=0.9)(x)
    assert float(y.abs().max()) == pytest.approx(0.9, rel=1e-6)
    assert torch.allclose(y[0] / y[1], x[0] / x[1])


def test_items_of_a_batch_are_normalised_apart(generator):
    x = torch.randn(4, 2, 100, generator=generator) * torch.tensor([1e-30, 1.0, 5.0, 1e30])[:, None, None]
    assert torch.allclose(fx.effect.Normalize(0.5)(x).abs().amax((1, 2)), torch.tensor(0.5))


def test_silence_stays_silence():
    assert not fx.effect.Normalize()(torch.zeros(2, 10)).any()


def test_bad_arguments_raise():
    for peak in (0, -1, float("inf")):
        with pytest.raises(ArgumentError, match="peak must"):
            fx.effect.Normalize(peak=peak)
    with pytest.raises(ArgumentError, match="empty shape"):
        fx.effect.Normalize()(torch.zeros(2, 0))
