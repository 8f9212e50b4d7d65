"""Channels mixed with each other."""

import math

import pytest
import torch

import torchfx as fx
from torchfx.effect import Balance, ChannelMatrix, Invert, Mono, Pan, StereoWidth
from torchfx.errors import ArgumentError
from torchfx.spec import build


@pytest.mark.parametrize("position", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_a_mono_signal_is_panned_at_equal_power(generator, position):
    x = torch.randn(1, 100, generator=generator)
    y = Pan(position)(x)
    angle = (position + 1) * math.pi / 4
    assert torch.allclose(y, torch.tensor([[math.cos(angle)], [math.sin(angle)]]) * x, atol=1e-7)
    assert torch.allclose(y.square().sum(0), x[0].square(), rtol=1e-5)


def test_a_stereo_signal_is_panned_as_web_audio_does(generator):
    left, right = torch.randn(2, 100, generator=generator, dtype=torch.float64)
    x = torch.stack([left, right])
    assert torch.equal(Pan(0.0)(x), x)
    share = 0.4 * math.pi / 2
    y = Pan(0.4)(x)
    assert torch.allclose(y, torch.stack([left * math.cos(share), right + left * math.sin(share)]))
    assert torch.allclose(Pan(-0.4)(x.flip(0)).flip(0), y)


def test_balance_turns_one_side_down(generator):
    x = torch.randn(3, 2, 10, generator=generator)
    assert torch.equal(Balance(-0.25)(x), x * torch.tensor([[1.0], [0.75]]))
    assert torch.equal(Balance(1.0)(x), x * torch.tensor([[0.0], [1.0]]))


@pytest.mark.parametrize("width", [0.0, 0.5, 1.0, 2.0])
def test_width_scales_the_side_and_leaves_the_middle(generator, width):
    x = torch.randn(2, 100, generator=generator, dtype=torch.float64)
    y = StereoWidth(width)(x)
    assert torch.allclose(y[0] + y[1], x[0] + x[1])
    assert torch.allclose(y[0] - y[1], width * (x[0] - x[1]))


def test_a_matrix_mixes_17_channels_to_3(generator):
    x, weights = torch.randn(2, 17, 1025, generator=generator), torch.randn(3, 17, generator=generator)
    module = ChannelMatrix(weights)
    y, expected = module(x), torch.einsum("oi,bit->bot", weights.double(), x.double())
    assert module.output_shape((2, 17)) == (2, 3)
    assert float((y - expected).abs().max() / expected.abs().max()) < 1e-7
    assert torch.equal(y, module(x.transpose(1, 2).contiguous().transpose(1, 2)))


def test_mono_is_the_mean(generator):
    x = torch.randn(4, 6, 1, generator=generator)
    assert torch.allclose(Mono()(x), x.mean(-2, keepdim=True))
    assert torch.equal((fx.Wave(x[0], 8000) | Mono()).ys, Mono()(x[0]))


def test_inversion_cancels(generator):
    x = torch.randn(2, 50, generator=generator)
    assert not (Invert() + fx.effect.Gain(1.0))(x).any()


def test_a_matrix_is_built_from_text():
    matrix = build("channelmatrix:[0, 1; 1, 0]").matrix
    assert matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("make", "x", "message"),
    [
        (lambda: Pan(1.5), None, r"position must lie in \[-1, 1\], got 1.5"),
        (lambda: StereoWidth(-1), None, r"width must lie in \[0, 100\], got -1"),
        (lambda: ChannelMatrix([1.0, 2.0]), None, r"matrix must have the shape \(..., outputs, inputs\), got \(2,\)"),
        (lambda: ChannelMatrix([[1.0], [1.0, 2.0]]), None, "matrix must have the shape"),
        (lambda: Pan(), torch.ones(3, 5), r"x must have 2 channels, .* for Pan, got the leading dimensions \(3,\)"),
        (lambda: Mono(), torch.ones(5), r"x must have some channels, .* for Mono, got the leading dimensions \(\)"),
        (lambda: Pan(torch.zeros(2)), torch.ones(2, 5), r"position must be a number or have the shape \(..., 1\)"),
    ],
)
def test_misuse_is_named(make, x, message):
    with pytest.raises(ArgumentError, match=message):
        make()(x)
