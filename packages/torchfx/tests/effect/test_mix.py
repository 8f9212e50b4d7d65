"""Dry and wet."""

import pytest
import torch
from torch import nn

import torchfx as fx
from torchfx.effect import Delay, Mix
from torchfx.errors import ArgumentError


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_it_adds_input_and_output_by_their_parts(generator, mix):
    x, low = torch.randn(2, 300, generator=generator), fx.filter.LoButterworth(500, fs=48_000)
    assert torch.allclose(Mix(low, mix)(x), (1 - mix) * x + mix * low(x), atol=1e-6)


def test_in_a_stream_the_input_waits_for_what_lags(generator):
    late = fx.WithContext(nn.Conv1d(2, 2, 7), 3, 3)
    module, x = Mix(late | fx.effect.Gain(0.5), 0.4), torch.randn(2, 500, generator=generator)
    stream = fx.realtime.Stream(module, 48_000, 2)
    with torch.no_grad():
        parts = [stream.process(block) for block in x.split(97, dim=-1)] + [stream.flush()]
        assert stream.latency_samples == 3
        assert torch.allclose(torch.cat(parts, dim=-1)[:, 3:], module(x), atol=1e-6)
        assert torch.allclose(module(x), 0.6 * x + 0.2 * late(x), atol=1e-6)


def test_mix_is_assigned_and_learned(generator):
    module, x = Mix(Delay("3 samples", fs=48_000), 0.5), torch.randn(2, 20, generator=generator)
    module.mix = 0.0
    assert torch.equal(module(x), x)
    module.mix = nn.Parameter(torch.tensor(0.5))
    assert len(list(module.parameters())) == 1
    module(x)[0, 5].backward()
    assert torch.allclose(module.mix.grad, x[0, 2] - x[0, 5])


def test_misuse_is_named():
    for make in (lambda: Mix(fx.effect.Gain(0.5), 2.0), lambda: setattr(Mix(fx.effect.Gain(0.5)), "mix", 2.0)):
        with pytest.raises(ArgumentError, match=r"mix must lie in \[0, 1\], got 2"):
            make()
    with pytest.raises(fx.errors.ArgumentTypeError, match=r"modules must be nn\.Modules, got 3"):
        Mix(3)
