"""What a call of a GPU kernel costs the host, in calls, with a compiled kernel instead of Triton's."""

import inspect
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchfx import _ops
from torchfx._ops import operator, triton_launch
from torchfx._ops.operator import _falls_back
from torchfx._ops.triton_launch import KernelError, launch

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
        *arguments, "N", "LANES", "LOG_LANES", "LOG_T", "SHIFTED", "PAIRS", "HAS_STATE", "HAS_CHECKPOINTS"
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


# --- what fails -------------------------------------------------------------------------------------------


class Refusing(Kernel):
    """A kernel that can't be compiled or loaded."""

    def __init__(self, why):
        super().__init__("x")
        self.why = why

    def __getitem__(self, grid):
        def refuse(*arguments, **constants):
            raise RuntimeError(self.why)

        return refuse


def test_a_device_that_is_full_has_its_kernel_once_there_is_room():
    """Its code needs memory, too: neither is the device given up for the reference, nor the call tried on it."""
    x = torch.zeros(8)
    with pytest.raises(torch.OutOfMemoryError, match=r"RuntimeError: Triton Error \[CUDA\]: out of memory"):
        launch(Refusing("Triton Error [CUDA]: out of memory"), 1, x, x)
    with pytest.raises(KernelError, match="RuntimeError: device kernel image is invalid"):
        launch(Refusing("Triton Error [CUDA]:\ndevice kernel image is invalid"), 1, x, x)


def test_a_kernel_that_is_first_launched_while_a_graph_is_captured_is_no_missing_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    class OnDevice(torch.Tensor):
        is_cuda = True

        def get_device(self):
            return 0

    x = torch.zeros(8).as_subclass(OnDevice)
    with pytest.raises(RuntimeError, match="run this once before a graph is captured") as caught:
        launch(Refusing("operation not permitted when stream is capturing"), 1, x, x)
    assert not isinstance(caught.value, KernelError)


def test_a_type_that_has_no_kernel_keeps_none_from_the_others():
    ran = []

    def backend(x, y):
        if x.dtype is torch.float64:
            raise KernelError("no float64 here")
        ran.append("kernel")

    run = _falls_back("twice", backend, lambda x, y: ran.append("reference"))
    with pytest.warns(RuntimeWarning, match="twice has no kernel for torch.float64 on cpu: no float64 here"):
        run(torch.zeros(2, dtype=torch.float64), None)
    run(torch.zeros(2), None)
    run(torch.zeros(2, dtype=torch.float64), None)  # warnings are errors here
    assert ran == ["reference", "kernel", "reference"]


def of(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


X = of(2, 3000).float()
SIGNALS = {
    # name: arguments; every coefficient and state is a view that a kernel can't read
    "sos_forward": (X, of(6, 4).T, of(2, 2, 4).permute(2, 0, 1), 1),
    "fir_forward": (X, of(2, 70)[..., ::2], of(2, 68)[..., ::2]),
    "fir_backward": (X, of(2, 68)[..., ::2], X, of(2, 70)[..., ::2], True, True, True),
    "ballistics_forward": (X, of(4)[::2], of(4)[::2]),
    "dynamics_forward": (X, None, of(16)[::2], of(2)[::2], -2),
    "delay_network_forward": (X, [7, 9], of(4, 3).T, None, of(32)[::2], None, False),
    "allpole_forward": (X, of(2, 3000, 4)[..., ::2], of(2, 4)[..., ::2]),
    "state_space_forward": (X, of(1, 3, 6)[..., ::2], of(2, 4)[..., ::2]),
    "mel_forward": (X, of(100)[::2], of(51, 9).T[:, ::2], 50, 10, 0, 296, False, 2.0, 0.0, False, 1.0, 1e-10, 0.0),
    "saturated_forward": (X, of(1, 3, 6)[..., ::2], of(4)[::2], of(4)[::2], of(2, 4)[..., ::2]),
}


class Full(TorchDispatchMode):
    """A device with room for so many tensors."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in {"empty", "new_empty", "clone", "cat", "empty_like", "new_empty_strided"}:
            if not self.room:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.5 MiB.")
            self.room -= 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", SIGNALS)
def test_a_full_device_is_told_before_a_result_is_written(name, monkeypatch):
    """With room for 0, 1, 2, ... tensors until there is enough: results, tables, copies of views.

    A backward pass, whose results nobody has yet, writes one gradient before it makes room for the next.
    """
    run = inspect.getclosurevars(_ops.operators[name]).nonlocals["gpu"]
    results, given = [], []
    allocated = operator.empty
    monkeypatch.setattr(operator, "empty", lambda *like: results.append(allocated(*like)) or results[-1])
    monkeypatch.setattr(triton_launch, "launch", lambda kernel, programs, x, *arguments, **_: given.extend(arguments))
    arguments = SIGNALS[name]
    kept = [each.clone() if isinstance(each, torch.Tensor) else each for each in arguments]
    for room in range(100):
        results.clear(), given.clear()
        try:
            with Full(room):
                run(*arguments)
            break
        except torch.OutOfMemoryError as error:
            told = str(error)
            assert told.startswith(f"{name} needs ")
            assert told.count("shorter blocks") == 1
            assert told.endswith("Tried to allocate 1.5 MiB.")
            assert "backward" in name or not any(result is each for result in results for each in given)
    assert 3 <= room < 100
    assert all(torch.equal(a, b) for a, b in zip(arguments, kept, strict=True) if isinstance(a, torch.Tensor))
