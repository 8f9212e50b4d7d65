"""The replay of a window: what is saved follows from the queue of the device and the waits of the host."""

import numpy as np
import pytest

from tests.traces import Story
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.model.intervals import Intervals

GEMM = "ampere_sgemm_128x64_nn"


def times(*pairs):
    """Stretches given in microseconds."""
    begins, ends = np.array(pairs).T * 1000
    return Intervals.union(begins, ends)


def steps_of(kernel_us, launch_at=50, count=4, us=1000):
    """Each step launches one kernel at 50 us, which takes its time, and waits for it."""
    story = Story()
    for at in story.steps(count, us, waits=True):
        story.op("aten::mm", at + 10, 45)
        story.kernel(GEMM, at + launch_at + 10, kernel_us, launch_at=at + launch_at)
    return story.trace().derived(replay)


def test_nothing_is_saved_without_nothing():
    assert steps_of(500).saved() == 0


def test_the_host_saves_what_comes_before_its_launch():
    found = steps_of(500)
    assert found.saved(host=times(*((1000 * i + 10, 1000 * i + 40) for i in range(4)))) == 4 * 30_000
    assert found.saved(host=times(*((1000 * i + 100, 1000 * i + 400) for i in range(4)))) == 0  # it waits then


@pytest.mark.parametrize("part", [0.25, 1.0])
def test_the_device_saves_what_the_host_waits_for(part):
    kernels = times(*((1000 * i + 60, 1000 * i + 560) for i in range(4)))
    found = steps_of(500).saved(device=kernels, device_part=part)
    assert found == pytest.approx(4 * 500_000 * part, rel=1e-6)


def test_a_wait_left_out_lets_the_host_run_ahead():
    """Kernels of 500 us, 1000 us apart: without the waits the host takes 495 us a step, and they follow each other."""
    waits = times(*((1000 * i + 55, 1000 * i + 560) for i in range(4)))
    assert steps_of(500).saved(host=waits) == 3 * 500_000


def test_late_batches_come_when_they_come():
    """Two workers: every second batch is waited for, so less work on the host saves nothing up to the last of them."""
    story = Story()
    for at in story.steps(8, 1000):
        story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 400 if at // 1000 % 2 else 10)
        story.op("aten::mm", at + 410, 300)
        story.kernel(GEMM, at + 705, 200, launch_at=at + 700)
    found = story.trace().derived(replay)
    assert len(found.late) == 4
    early = times(*((1000 * i + 450, 1000 * i + 650) for i in range(7)))
    assert found.saved(host=early) == 0
    assert found.saved(host=early | times((7450, 7650))) > 0
