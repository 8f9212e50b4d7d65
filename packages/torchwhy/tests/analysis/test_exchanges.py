"""Communication in the window: total, hidden and exposed, by device, kind and library."""

import pytest

from tests.traces import Story
from torchwhy.analysis.exchanges import exchange_times

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
DISPATCH = "void deep_ep::intranode::dispatch<8, 768>(int4*)"


def test_two_libraries_on_two_devices():
    story = Story(rank=0)
    for i in range(3):
        at = 1000 * i
        story.step(i, at, 990)
        story.kernel("gemm", at + 50, 300, launch_at=at + 10)
        args = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}
        story.kernel(REDUCE, at + 300, 100 + 50 * i, launch_at=at + 20, stream=20, **args)
        story.kernel(DISPATCH, at + 600, 80, launch_at=at + 30, stream=30, device=1)
    reduce, dispatch = exchange_times(story.trace())
    assert (reduce.device, reduce.name, reduce.library, reduce.count) == (0, "all_reduce", "NCCL", 3)
    assert (reduce.time_us, reduce.hidden_us, reduce.exposed_us) == (450, 150, 300)
    assert (reduce.waiting_us, reduce.median_bytes) == (150, 4000)
    assert (dispatch.device, dispatch.name, dispatch.library) == (1, "all_to_all", "DeepEP")
    assert (dispatch.time_us, dispatch.hidden_us, dispatch.exposed_us) == (240, 0, 240)
    assert (dispatch.waiting_us, dispatch.median_bytes) == (0, None)


def test_exchanges_through_the_host():
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    for at in story.steps(2, 990, every=1000):
        story.op("aten::mm", at + 10, 400)
        story.note("gloo:all_reduce", at + 310, 500, tid=200)
    [row] = exchange_times(story.trace())
    assert (row.device, row.library, row.count) == (-1, "Gloo", 2)
    assert (row.time_us, row.hidden_us, row.exposed_us) == (1000, 200, 800)


def test_a_program_of_one_device_exchanges_nothing():
    story = Story()
    story.kernel("gemm", 50, 300, launch_at=10)
    assert exchange_times(story.trace()) == ()


@pytest.mark.parametrize("library", ["nccl", "rccl", "xccl", "hccl"])
@pytest.mark.parametrize("on_device", [True, False])
def test_a_label_on_the_host_is_only_the_launch_of_a_device_s_library(library, on_device):
    """A world of one rank exchanges nothing, and kernels may be missing: how long it took is unknown."""
    story = Story(rank=0) if on_device else Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::mm", at + 5, 20)
        if on_device:
            story.kernel("gemm", at + 50, 300, launch_at=at + 10)
        story.note(f"{library}:all_reduce", at + 400, 200)
    assert exchange_times(story.trace()) == ()
