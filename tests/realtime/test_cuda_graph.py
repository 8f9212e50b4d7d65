"""`CudaGraphRunner` without a GPU: capturing is replaced by calling, all else is the runner's own."""

import pytest
import torch

import torchfx as fx
from torchfx._ops import native
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.realtime import CudaGraphRunner, cuda_graph

CHAIN = fx.filter.HiButterworth(80, order=4) | fx.effect.Gain("-3dB") | fx.filter.Peaking(1000) | fx.effect.Gain(0.5)


@pytest.fixture
def called(monkeypatch):
    """Take the CPU for the device; replay by calling again, after as many warm-up runs as on a device."""

    def captured(step, device):
        for _ in range(cuda_graph.WARM_UP):
            step()
        result = torch.empty_like(step())

        def replay():
            result.copy_(step())

        return result, replay

    monkeypatch.setattr(cuda_graph, "DEVICE", "cpu")
    monkeypatch.setattr(cuda_graph, "_captured", captured)
    monkeypatch.setattr(native, "library", None)  # steps in Python, as on a device


def test_blocks_equal_the_stream(called, generator):
    x = torch.randn(2, 4 * 512, generator=generator)
    example = torch.randn(2, 512, generator=generator)
    kept = example.clone()
    runner = CudaGraphRunner(CHAIN, example, fs=48_000)
    stream = fx.realtime.Stream(CHAIN, 48_000, 2)
    for _ in range(2):
        blocks = [runner.run(block) for block in x.split(512, dim=-1)]
        exact = torch.cat([stream.process(block) for block in x.split(512, dim=-1)], dim=-1)
        assert float((torch.cat(blocks, dim=-1) - exact).abs().max()) < 1e-6
        runner.reset_state()
        stream.reset()
    assert torch.equal(example, kept)


def test_each_misuse_is_named(called, monkeypatch):
    block = torch.zeros(2, 64)
    gain = fx.effect.Gain(0.5)
    with pytest.raises(ArgumentTypeError, match=r"module must be an nn\.Module, got 3"):
        CudaGraphRunner(3, block)
    with pytest.raises(StreamError, match="Reverse"):
        CudaGraphRunner(fx.effect.Reverse(), block)
    with pytest.raises(ArgumentError, match=r"chunk must be torch.float32 of shape \(2, 64\) on cpu.*\(2, 65\)"):
        CudaGraphRunner(gain, block).run(torch.zeros(2, 65))

    def refused(step, device):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(cuda_graph, "_captured", refused)
    with pytest.raises(StreamError, match="can't be captured as a CUDA graph: operation not permitted"):
        CudaGraphRunner(gain, block)
    monkeypatch.setattr(cuda_graph, "DEVICE", "cuda")
    with pytest.raises(ArgumentError, match=r"example must lie on a CUDA device, got cpu; torchfx.realtime.Stream"):
        CudaGraphRunner(gain, block)
