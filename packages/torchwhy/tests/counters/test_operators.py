"""Which calls copy and which wait, asked of fake tensors on a GPU that need not exist."""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from torchwhy.counters.operators import PYTORCH_NAMESPACES, copy_of, is_native, waits


@pytest.fixture
def tensors():
    with FakeTensorMode():
        return {
            "cpu": torch.empty(10),
            "gpu": torch.empty(10, device="cuda"),
            "other": torch.empty(10, device="cuda:1"),
            "mask": torch.empty(10, dtype=torch.bool, device="cuda"),
            "index": torch.empty(2, dtype=torch.int64, device="cuda"),
            "host mask": torch.empty(10, dtype=torch.bool),
        }


KINDS = [("cpu", "gpu", "HtoD"), ("gpu", "cpu", "DtoH"), ("gpu", "other", "DtoD"), ("cpu", "cpu", "HtoH")]


@pytest.mark.parametrize(("source", "target", "kind"), KINDS)
def test_copies_are_named_by_the_memories_they_join(tensors, source, target, kind):
    source, target = tensors[source], tensors[target]
    assert copy_of("aten::_to_copy", [source], target) == (kind, 40)
    assert copy_of("aten::copy_", [target, source], target) == (kind, 40)


@pytest.mark.parametrize(("source", "target", "kind"), KINDS)
def test_blocking_copies_between_host_and_device_wait(tensors, source, target, kind):
    source, target = tensors[source], tensors[target]
    between = kind in ("HtoD", "DtoH")
    assert waits("aten::_to_copy", [source], {}, target) == between
    assert waits("aten::copy_", [target, source], {}, target) == between


def test_non_blocking_copies_do_not_wait(tensors):
    cpu, gpu = tensors["cpu"], tensors["gpu"]
    assert not waits("aten::_to_copy", [cpu], {"non_blocking": True}, gpu)
    assert not waits("aten::copy_", [gpu, cpu, True], {}, gpu)


@pytest.mark.parametrize(
    "operator",
    ["_local_scalar_dense", "nonzero", "masked_select", "equal", "allclose", "_unique2", "repeat_interleave"],
)
def test_reading_values_waits_on_a_device_only(tensors, operator):
    assert waits(f"aten::{operator}", [tensors["gpu"]], {})
    assert not waits(f"aten::{operator}", [tensors["cpu"]], {})


def test_a_size_that_is_given_saves_the_wait(tensors):
    assert not waits("aten::nonzero_static", [tensors["gpu"]], {})


def test_a_known_output_size_saves_the_wait(tensors):
    assert not waits("aten::repeat_interleave", [tensors["index"]], {"output_size": 5})


def test_indexing_waits_for_masks_and_not_for_positions(tensors):
    gpu = tensors["gpu"]
    assert waits("aten::index", [gpu, [tensors["mask"]]], {})
    assert waits("aten::index_put_", [gpu, [None, tensors["mask"]], gpu], {})
    assert not waits("aten::index", [gpu, [None, tensors["index"]]], {})
    assert not waits("aten::index", [tensors["cpu"], [tensors["host mask"]]], {})


def test_tensors_from_python_values_are_copied_to_the_device_and_waited_for(tensors):
    assert copy_of("aten::lift_fresh", [tensors["gpu"]], tensors["gpu"]) == ("HtoD", 40)
    assert waits("aten::lift_fresh", [tensors["gpu"]], {})
    assert copy_of("aten::lift_fresh", [tensors["cpu"]], tensors["cpu"]) is None
    assert not waits("aten::lift_fresh", [tensors["cpu"]], {})


def test_arithmetic_neither_copies_nor_waits(tensors):
    gpu = tensors["gpu"]
    assert copy_of("aten::add", [gpu, gpu], gpu) is None
    assert not waits("aten::add", [gpu, gpu], {}, gpu)


def test_namespaces_that_torch_itself_fills_are_not_native():
    code = "import torch; print('\\n'.join(torch._C._dispatch_get_all_op_names()))"  # a process that has done no more
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.partition("::")[0] for name in names} <= PYTORCH_NAMESPACES
    assert not is_native("cplib")  # context parallelism, loaded when it is used
    assert is_native("torchfx_ext")
