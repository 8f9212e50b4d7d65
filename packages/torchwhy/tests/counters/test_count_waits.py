"""Waits for a device, with the line that caused them; the device is simulated."""

import types

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import torchwhy
from torchwhy.counters import synchronizations


def test_item_on_a_device_is_a_wait_with_its_line():
    with FakeTensorMode(shape_env=ShapeEnv()), torchwhy.count() as c:
        loss = torch.ones(3, device="cuda").sum()
        for _ in range(2):
            loss.item()  # a symbol stands for the value
    (sync,) = c.syncs
    assert (sync.operator, sync.times) == ("aten::_local_scalar_dense", 2)
    assert sync.where.partition(":")[0].endswith("test_count_waits.py")
    assert sync.where.endswith("in test_item_on_a_device_is_a_wait_with_its_line")
    assert c["copies_dtoh"] == 0


def test_a_copy_to_the_host_waits_and_is_counted_in_bytes():
    with FakeTensorMode(), torchwhy.count() as c:
        torch.ones(3, device="cuda").cpu()
        torch.ones(5, device="cuda").to("cpu", non_blocking=True)
    assert c["syncs"] == 1
    assert (c["copies_dtoh"], c["bytes_dtoh"]) == (2, 32)


@pytest.fixture
def device(monkeypatch):
    """A module with a `synchronize`, known to the watch as PyTorch's own are."""
    module = types.ModuleType("simulated_device")
    module.synchronize = lambda: "waited"
    monkeypatch.setitem(synchronizations.sys.modules, "simulated_device", module)
    monkeypatch.setattr(synchronizations, "_PLACES", (("simulated_device", "synchronize", "torch.cuda.synchronize"),))
    return module


def test_explicit_waits_are_counted_and_still_done(device):
    with torchwhy.count() as c:
        assert device.synchronize() == "waited"
    assert [(sync.operator, sync.times) for sync in c.syncs] == [("torch.cuda.synchronize", 1)]


def test_functions_that_wait_are_put_back(device):
    original = device.synchronize
    with torchwhy.count() as outer:
        with torchwhy.count() as inner:
            device.synchronize()
        assert device.synchronize is not original
        device.synchronize()
    assert device.synchronize is original
    assert (outer["syncs"], inner["syncs"]) == (2, 1)
    device.synchronize()
    assert outer["syncs"] == 2


def test_the_places_where_pytorch_waits_exist():
    assert isinstance(torch.cuda.streams.Stream.synchronize, types.FunctionType)
    assert isinstance(torch.cuda.streams.Event.synchronize, types.FunctionType)
