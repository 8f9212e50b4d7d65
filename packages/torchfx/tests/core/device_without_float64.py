"""Signals on a device without float64: processed on the CPU, returned where they were.

PyTorch lets Python serve a device. The one here holds a CPU tensor, refuses float64, and does nothing but copy.
`test_without_float64.py` runs these tests in a process of their own: a device has to be there before the first
gradient.
"""

import warnings

import pytest
import torch

import torchfx as fx
from torchfx.errors import ArgumentError
from torchfx.realtime import Stream
from torchfx.tensors import _warn_of

backend_registration = pytest.importorskip("torch.utils.backend_registration")
aten = torch.ops.aten


class OnDevice(torch.Tensor):
    """A tensor on the device "single"."""

    @staticmethod
    def __new__(cls, held):
        if held.dtype == torch.float64:
            raise TypeError("single has no float64")
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), dtype=held.dtype, device="single:0"
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is aten.copy_.default and isinstance(args[0], OnDevice):
            args[0].held.copy_(args[1])
            return args[0]
        if function is aten._to_copy.default and kwargs["device"] == torch.device("cpu"):
            return function(args[0].held, **kwargs)
        if function in {aten.detach.default, aten.tanh.default}:
            return OnDevice(function(args[0].held))
        raise NotImplementedError(f"{function} on the device")


@pytest.fixture(scope="module")
def single():
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this PyTorch has no devices in Python")
    backend_registration._setup_privateuseone_for_python_backend("single")
    library = torch.library.Library("aten", "IMPL")

    def empty(size, dtype=None, **_):
        return OnDevice(torch.empty(size, dtype=dtype or torch.float32))

    def empty_strided(size, stride, dtype=None, **_):
        return OnDevice(torch.empty_strided(size, stride, dtype=dtype or torch.float32))

    library.impl("empty.memory_format", empty, "PrivateUse1")
    library.impl("empty_strided", empty_strided, "PrivateUse1")
    yield torch.device("single")
    library._destroy()


def chain():
    return fx.filter.LoButterworth(1000) | torch.nn.Tanh() | fx.effect.Compressor() | fx.effect.Reverse()


SIGNAL = torch.randn(2, 500, generator=torch.Generator().manual_seed(0))
PARTS = ["chain", *(type(part).__name__ for part in chain())]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore:'single' has no float64")
def test_the_result_is_the_cpu_s_on_the_signal_s_device(single, part):
    processor = chain() if part == "chain" else chain()[PARTS.index(part) - 1]
    expected = (fx.Wave(SIGNAL, 48_000) | processor).ys
    piped = fx.Wave(SIGNAL, 48_000, device=single) | processor.to(single)
    assert piped.ys.device.type == "single"
    assert torch.equal(piped.ys.cpu(), expected)
    if part in {"chain", "LoButterworth", "Compressor"}:
        processor.fs = 48_000
        assert torch.equal(processor(SIGNAL.to(single)).cpu(), expected)


@pytest.mark.filterwarnings("ignore:'single' has no float64")
def test_streams_do_the_same(single):
    stream, on_cpu = (Stream(fx.filter.LoButterworth(1000) | fx.effect.Compressor(), 48_000, 2) for _ in range(2))
    for block in SIGNAL.split(100, -1):
        assert torch.equal(stream.process(block.to(single)).cpu(), on_cpu.process(block))


@pytest.mark.filterwarnings("ignore:'single' has no float64")
def test_gradients_come_back(single):
    x, same = (SIGNAL.clone().requires_grad_() for _ in range(2))
    fx.filter.LoButterworth(1000, fs=48_000)(x.to(single)).cpu().square().sum().backward()
    fx.filter.LoButterworth(1000, fs=48_000)(same).square().sum().backward()
    assert torch.equal(x.grad, same.grad)


def test_it_is_said_once_and_functions_say_what_to_do(single):
    _warn_of.cache_clear()
    processor = fx.filter.LoButterworth(1000, fs=48_000)
    with pytest.warns(RuntimeWarning, match="'single' has no float64, in which torchfx computes: signals on it"):
        processor(SIGNAL.to(single))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        processor(SIGNAL.to(single))
    with pytest.raises(ArgumentError, match="x must lie on a device that has float64, got 'single:0'"):
        fx.functional.sosfilt([[1.0, 0, 0, 1, 0, 0]], SIGNAL.to(single))
