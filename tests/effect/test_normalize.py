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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 3e38, 1e30, 1e-30, 1e-38, 1e-44])
def test_peak_is_reached_from_any_magnitude(dtype, scale):
    """3e38 is near the largest float32, 1e-38 and below are denormal; factors between them do not fit into float32."""
    x = torch.tensor([[1.0, -0.5], [0.25, 0.0]], dtype=dtype) * torch.tensor(scale, dtype=dtype)
    expected = (x.double() / x.double().abs().max() * 0.5).to(dtype)
    assert torch.allclose(fx.effect.Normalize(0.5)(x), expected, rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_denormal_doubles_are_lifted_too():
    x = torch.tensor([[4e-310, -1e-310]], dtype=torch.float64)
    assert torch.allclose(fx.effect.Normalize(1.0)(x), torch.tensor([[1.0, -0.25]], dtype=torch.float64), rtol=1e-10)


@pytest.mark.parametrize("peak", [1e-30, 1e30])
def test_any_peak_is_reached(generator, peak):
    y = fx.effect.Normalize(peak)(torch.randn(2, 100, generator=generator))
    assert float(y.abs().max()) == pytest.approx(peak, rel=1e-6)


@pytest.mark.parametrize(
    ("bad", "count"), [([float("nan")], 1), ([float("inf"), -float("inf")], 2), ([float("nan"), float("inf"), 1.0], 2)]
)
def test_what_is_not_finite_is_counted(bad, count):
    x = torch.zeros(2, 10)
    x[1, : len(bad)] = torch.tensor(bad)
    with pytest.raises(ArgumentError, match=f"x must be finite to be normalised, got {count} NaN or infinite samples"):
        fx.effect.Normalize()(x)
