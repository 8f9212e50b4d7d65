"""Parts of the recorded time add up to the whole."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from torchfx.profiler.capture.breakdown import break_down


@dataclass
class Event:
    name: str
    start: float
    end: float
    thread: int = 1
    is_user_annotation: bool = False
    device: str = "CPU"
    time_range: SimpleNamespace = field(init=False)
    device_type: SimpleNamespace = field(init=False)

    def __post_init__(self):
        self.time_range = SimpleNamespace(start=self.start, end=self.end)
        self.device_type = SimpleNamespace(name=self.device)


STEPS = [Event("ProfilerStep#0", 0, 100, is_user_annotation=True), Event("ProfilerStep#1", 100, 200)]


def shares(*events, device=False):
    found = break_down([[*STEPS, *events]], device)
    assert sum(share.time_us for share in found.shares) == pytest.approx(found.wall_us)
    assert found.wall_us == 200
    assert found.steps == 2
    return {share.name: share.time_us for share in found.shares}


def test_parts_are_named_by_the_outermost_event():
    assert shares(
        Event("enumerate(DataLoader)#_SingleProcess.__next__", 0, 30, is_user_annotation=True),
        Event("aten::stack", 5, 10),
        Event("aten::linear", 40, 50),
        Event("autograd::engine::evaluate_function: MmBackward0", 50, 65),
        Event("Optimizer.step#SGD.step", 70, 90, is_user_annotation=True),
        Event("aten::add_", 75, 80),
    ) == {"data loading": 30, "operators": 10, "backward": 15, "optimizer": 20, "between operators": 125}


def test_annotations_of_the_program_are_looked_through():
    parts = shares(Event("my part", 0, 50, is_user_annotation=True), Event("aten::mm", 10, 20))
    assert parts == {"operators": 10, "between operators": 190}


def test_backward_on_another_thread_counts_while_this_one_waits():
    parts = shares(Event("aten::mm", 0, 10), Event("autograd::engine::evaluate_function: X", 5, 30, thread=2))
    assert parts == {"operators": 10, "backward": 20, "between operators": 170}


def test_what_lies_outside_the_steps_does_not_count():
    assert shares(Event("aten::mm", -20, 5), Event("aten::mm", 195, 230)) == {"operators": 10, "between operators": 190}


def test_the_gpu_is_busy_where_any_kernel_runs():
    kernels = [Event("gemm", 10, 30, device="CUDA"), Event("add", 20, 40, device="CUDA")]
    echo = Event("ProfilerStep#0", 0, 200, is_user_annotation=True, device="CUDA")
    assert break_down([[*STEPS, *kernels, echo]], True).device_busy_us == 30
    assert break_down([STEPS], False).device_busy_us is None


def test_without_steps_the_window_is_what_was_announced():
    found = break_down([[Event("aten::mm", 10, 20), Event("aten::add", 30, 50)]], False)
    assert (found.wall_us, found.steps) == (40, 0)
