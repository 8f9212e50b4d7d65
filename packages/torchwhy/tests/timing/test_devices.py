"""Which accelerators are waited for; a stand-in plays the accelerator."""

from types import SimpleNamespace

import pytest
import torch

from torchwhy.timing import devices
from torchwhy.timing.stopwatch import Stopwatch


@pytest.fixture
def accelerator(monkeypatch):
    """Three CUDA devices: 1 is current, 2 has memory allocated. Set `started` to use them."""
    state = SimpleNamespace(started=True, log=[])
    module = SimpleNamespace(is_initialized=lambda: state.started, memory_reserved=lambda index: 512 * (index == 2))
    stand_in = SimpleNamespace(
        current_accelerator=lambda: torch.device("cuda"),
        is_available=lambda: True,
        current_device_index=lambda: 1,
        device_count=lambda: 3,
        synchronize=lambda device: state.log.append(str(device)),
    )
    monkeypatch.setattr(devices.torch, "accelerator", stand_in)
    monkeypatch.setattr(devices.torch, "get_device_module", lambda kind: module)
    return state


def test_the_current_device_and_those_with_memory_are_in_use(accelerator):
    assert devices.accelerators_in_use() == (torch.device("cuda", 1), torch.device("cuda", 2))


def test_a_device_that_was_never_started_is_left_alone(accelerator):
    accelerator.started = False
    assert devices.accelerators_in_use() == ()


def test_every_reading_of_the_clock_waits_first(accelerator):
    def clock():
        accelerator.log.append("clock")
        return 0.0

    watch = Stopwatch(lambda: accelerator.log.append("call"), clock)
    watch.freeze()
    watch.block(2)
    wait = ["cuda:1", "cuda:2", "clock"]
    assert accelerator.log == [*wait, "call", "call", *wait]


def test_a_device_started_by_the_first_call_is_found(accelerator):
    accelerator.started = False
    watch = Stopwatch(lambda: setattr(accelerator, "started", True), lambda: 0.0)
    watch.block(1)
    assert accelerator.log == ["cuda:1", "cuda:2"]
    assert len(watch.freeze()) == 2
