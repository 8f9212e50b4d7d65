"""`CudaGraphRunner` without a GPU: capturing is replaced by calling, all else is the runner's own."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import torchfx as fx
from processors import cases
from torchfx import tensors
from torchfx._ops import native
from torchfx.catalogue import available
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError
from torchfx.plan import plan_of
from torchfx.realtime import CudaGraphRunner, cuda_graph
from torchfx.realtime.runner import Runner

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
    with pytest.raises(ArgumentError, match=r"example must lie on a CUDA device or the CPU, got meta"):
        CudaGraphRunner(gain, block.to("meta"))


def test_cpu_tensors_run_at_once_and_keep_their_state(generator):
    x = torch.randn(2, 4 * 512, generator=generator)
    runner = CudaGraphRunner(CHAIN, torch.zeros(2, 512), fs=48_000)
    with fx.sample_rate(48_000):
        whole = CHAIN(x)
    for _ in range(2):
        blocks = [runner.run(block) for block in x.split(512, dim=-1)]
        assert float((torch.cat(blocks, dim=-1) - whole).abs().max()) < 1e-6
        runner.reset_state()
    with pytest.raises(StreamError, match="Reverse"):
        CudaGraphRunner(fx.effect.Reverse(), torch.zeros(2, 64))
    with pytest.raises(ArgumentError, match=r"chunk must be torch.float32 of shape \(2, 512\) on cpu"):
        runner.run(torch.zeros(2, 64))


class Calls(TorchFunctionMode):
    """Collects tensors made on the device of numbers."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def __torch_function__(self, called, types, arguments=(), options=None):
        options = options or {}
        makes = called in (torch.tensor, torch.as_tensor) and not isinstance(arguments[0], torch.Tensor)
        if makes and options.get("device") == META:
            self.found.append(f"{called.__name__}({arguments[0]})")
        return called(*arguments, **options)


class Copies(TorchDispatchMode):
    """Collects operators that take tensors of the host to the device."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def __torch_dispatch__(self, called, types, arguments=(), options=None):
        y = called(*arguments, **options or {})
        given, made = (
            {each.device for each in tree_leaves(values) if isinstance(each, torch.Tensor)}
            for values in ((arguments, options), y)
        )
        if torch.device("cpu") in given and META in given | made:
            self.found.append(str(called))
        return y


META = torch.device("meta")


@pytest.mark.parametrize("name", cases.STREAMING)
def test_a_block_takes_nothing_from_the_host(monkeypatch, name):
    module = cases.CASES[name](0)
    plan = plan_of(fx.FilterChain(module), cases.FS).frozen()
    if plan.latency:
        pytest.skip("only streams handle what lags")
    runner = Runner(plan.steps, (2,), torch.float32, META)
    block = torch.empty(2, 512, device=META)
    runner.process(block)
    monkeypatch.setattr(tensors, "modes_active", lambda: False)  # those below change nothing
    runner.process(block)
    found = []
    with Calls(found), Copies(found):
        runner.process(block)
    assert not found


OF_THE_HOST = {"addbackgroundnoise"}
"""Processors with a recording, which lies where it was read."""


@pytest.mark.parametrize("name", sorted(available().keys() & cases.CASES.keys() - OF_THE_HOST))
def test_a_whole_signal_takes_nothing_from_the_host(monkeypatch, name):
    module, x = cases.CASES[name](0), torch.empty(2, 9600, device=META)
    with fx.sample_rate(cases.FS):
        module(x)
        monkeypatch.setattr(tensors, "modes_active", lambda: False)  # those below change nothing
        module(x)
        found = []
        with Calls(found), Copies(found):
            module(x)
    assert not found
