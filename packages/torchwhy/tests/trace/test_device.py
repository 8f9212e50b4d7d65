"""Busy time is a union over streams; exposed is what nothing else hides."""

import pytest

from tests.trace.model import trace
from tests.traces import Story
from torchwhy.trace.model.device import devices_of, streams_of


def test_busy_counts_overlapping_streams_once():
    story = Story()
    story.kernel("a", 0, 10, stream=7)
    story.kernel("b", 5, 10, stream=20)
    story.kernel("c", 30, 10, stream=7)
    gpu = story.trace().gpu
    assert (gpu.busy.total, gpu.span_ns, gpu.idle.total) == (25_000, 40_000, 15_000)
    assert gpu.streams == (7, 20)


def test_exposed_is_what_computing_does_not_hide():
    story = Story()
    story.kernel("gemm", 0, 10, stream=7)
    story.kernel("ncclDevKernel_AllReduce", 5, 10, stream=20)
    story.copy("HtoD (Pinned -> Device)", 12, 10, 1000, stream=21)
    gpu = story.trace().gpu
    assert (gpu.compute.total, gpu.communication.total, gpu.copies.total) == (10_000, 10_000, 10_000)
    assert gpu.exposed_communication.total == 5000
    assert gpu.exposed_copies.total == 7000


def test_a_fill_counts_as_computing():
    story = Story()
    story.fill(0, 10)
    assert story.trace().gpu.compute.total == 10_000


def test_each_device_has_its_own_work():
    story = Story()
    story.kernel("a", 0, 10, device=0)
    story.kernel("b", 5, 10, device=3)
    assert [(gpu.device, gpu.busy.total) for gpu in story.trace().gpus] == [(0, 10_000), (3, 10_000)]


@pytest.mark.parametrize(
    ("pid", "tid", "device", "stream"),
    [
        ("2", "stream 7 ", 2, 7),
        ("GPU 1", "7", 1, 7),
        ("", "", 0, 0),
        ("²", "x", 0, 0),
        ("9" * 40, "1" * 40, None, None),
    ],
)
def test_without_arguments_the_lane_tells(pid, tid, device, stream):
    found = trace([{"cat": "Kernel", "ts": 1, "dur": 1, "pid": pid, "tid": tid}])
    work = found.links.work
    if device is not None:
        assert (devices_of(found.events, work).tolist(), streams_of(found.events, work).tolist()) == (
            [device],
            [stream],
        )
    assert len(found.gpus) == 1


def test_without_work_all_is_zero():
    gpu = trace([]).gpu
    assert (gpu.span, gpu.span_ns, gpu.busy.total, gpu.idle.total, gpu.streams, len(gpu.kernels)) == (
        (0, 0),
        0,
        0,
        0,
        (),
        0,
    )
