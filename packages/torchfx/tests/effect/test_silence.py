"""Silence added or taken off."""

import pytest
import torch

import torchfx as fx
from torchfx.effect import Pad, TrimSilence
from torchfx.errors import ArgumentError, SampleRateError


def test_padding_is_trimmed_again(generator):
    x = torch.randn(3, 2, 100, generator=generator).sign() * 0.5
    padded = Pad("10 samples", 0.001, fs=48_000)(x)
    assert padded.shape == (3, 2, 158)
    assert not padded[..., :10].any()
    assert torch.equal(TrimSilence()(padded), x)


def test_the_loudest_channel_decides():
    x = torch.tensor([[0.0, 0.0, 0.2, 0.0, 0.0], [0.0, 0.0, 0.0, -0.2, 0.05]])
    assert torch.equal(TrimSilence(-20.0)(x), x[:, 2:4])
    assert torch.equal(TrimSilence(-40.0)(x), x[:, 2:])


def test_of_silence_one_sample_is_left():
    assert TrimSilence()(torch.zeros(2, 10)).shape == (2, 1)
    assert (fx.Wave(torch.zeros(2, 10), 8000) | TrimSilence()).ys.shape == (2, 1)


def test_gradients_pass_through():
    x = torch.tensor([0.0, 1.0, 2.0, 0.0], requires_grad=True)
    (Pad("2 samples", 0, fs=8000) | TrimSilence())(x).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_misuse_is_named():
    with pytest.raises(ArgumentError, match=r"threshold_db must lie in \(-inf, 0\] dB, got 3"):
        TrimSilence(3)
    with pytest.raises(ArgumentError, match=r"before must lie in \[0, inf\) s, got -1"):
        Pad(-1)
    with pytest.raises(SampleRateError, match="Pad"):
        Pad()(torch.ones(3))
