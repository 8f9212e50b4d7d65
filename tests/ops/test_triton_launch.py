"""What a call of a GPU kernel costs the host, in calls, with a compiled kernel in the place of Triton's."""

import inspect
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchfx import _ops
from torchfx._ops import triton_launch
from torchfx._ops.triton_launch import launch

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

SOS = torch.tensor([[1.0, 0, 0, 1, 0, 0]], dtype=torch.float64).repeat(4, 1)


class Compiled:
    """A compiled kernel: keeps what it is launched with."""

    def __init__(self):
        self.launches = []

    def __getitem__(self, grid):
        return lambda *arguments: self.launches.append((grid, arguments))


class Kernel:
    """A kernel that is yet to be compiled: keeps what Triton would compile it for."""

    def __init__(self, *arg_names):
        self.arg_names, self.compiled, self.asked = arg_names, Compiled(), []

    def __getitem__(self, grid):
        def compile_and_run(*arguments, **constants):
            self.asked.append((arguments, constants))
            return self.compiled

        return compile_and_run


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    monkeypatch.setattr(triton_launch, "_compiled", {})


@pytest.fixture
def gpu(monkeypatch):
    """Return what the entry point calls for CUDA tensors, and the kernel it launches."""
    arguments = [f"argument{i}" for i in range(19)]
    kernel = Kernel(
        *arguments, "N", "LANES", "LOG_LANES", "LOG_T", "SHIFTED", "HAS_STATE", "HAS_CHECKPOINTS"
    )  # fmt: skip
    kernels = SimpleNamespace(TABLE=SimpleNamespace(value=32), chunked=kernel)
    monkeypatch.setattr(triton_launch, "kernels", lambda package: kernels)
    monkeypatch.setattr(triton_launch, "why_missing", "")
    if "gpu" not in inspect.getclosurevars(_ops.operators["sos_forward"]).nonlocals:
        pytest.skip("needs triton")
    return inspect.getclosurevars(_ops.operators["sos_forward"]).nonlocals["gpu"], kernel


def calls(work):
    """Return the Python functions and PyTorch's operators that are called."""
    seen, dispatched = [], []

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            dispatched.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Counting():
        work()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen, dispatched


def test_a_block_through_a_cascade_is_a_score_of_calls_and_three_allocations(gpu):
    """Output, state after and the sections' table are allocated; nothing else is dispatched."""
    run, kernel = gpu
    x, state = torch.zeros(2, 512), torch.zeros(4, 2, 2, dtype=torch.float64)
    run(x, SOS, state, 1)
    seen, dispatched = calls(lambda: run(x, SOS, state, 1))
    assert len(kernel.asked) == 1  # Triton is not asked again
    assert len(kernel.compiled.launches) == 2
    assert len(seen) <= 22, seen
    assert dispatched == ["empty", "empty", "new_empty"]
    seen_at_rest, _ = calls(lambda: run(x, SOS, None, 1))
    assert len(seen_at_rest) < len(seen)


def test_a_known_kernel_is_launched_with_addresses_and_constants_in_order():
    kernel, x = Kernel("x", "count", "WIDTH", "IS_LAST"), torch.zeros(8)
    for _ in range(2):
        launch(kernel, 5, x, x, 3, IS_LAST=True, WIDTH=16)
    assert kernel.asked == [((x, 3), triton_launch.OPTIONS | {"IS_LAST": True, "WIDTH": 16})]
    assert kernel.compiled.launches == [((5, 1, 1), (x.data_ptr(), 3, 16, True))]


@pytest.mark.parametrize(
    ("tensor", "count", "constant"),
    [
        (torch.zeros(9)[1:], 3, 16),  # another alignment
        (torch.zeros(8, dtype=torch.float64), 3, 16),
        (torch.zeros(8), 1, 16),  # Triton compiles a 1 into a kernel
        (torch.zeros(8), 1 << 40, 16),
        (torch.zeros(8), 3, 32),
    ],
)
def test_triton_is_asked_for_what_it_may_compile_anew(tensor, count, constant):
    kernel, x = Kernel("x", "count", "WIDTH"), torch.zeros(8)
    launch(kernel, 1, x, x, 3, WIDTH=16)
    launch(kernel, 1, x, tensor, count, WIDTH=constant)
    assert len(kernel.asked) == 2


def test_launches_of_many_lengths_are_forgotten_in_time(monkeypatch):
    monkeypatch.setattr(triton_launch, "REMEMBERED", 10)
    kernel, x = Kernel("x", "time"), torch.zeros(8)
    for time in range(25):
        launch(kernel, 1, x, x, time)
        assert len(triton_launch._compiled) <= 10
    launch(kernel, 1, x, x, 24)
    assert len(kernel.asked) == 25
