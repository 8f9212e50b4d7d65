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


DISPATCH = "void (anonymous namespace)::dispatchKernel<10u, true, true>(unsigned long*)"
COMBINE = "void (anonymous namespace)::combineKernel<16u, true, true>(float*)"


def exchanging(name, *, ranks=8, blocks=20, stream=30, times=(40,) * 8, within=None, launch="cudaLaunchKernel"):
    """Microseconds of communication in a program of several ranks that computes on stream 7."""
    story = Story(distributedInfo={"backend": "nccl", "rank": 0, "world_size": ranks})
    for i, us in enumerate(times):
        at = 1000 * i
        story.kernel("gemm", at, 100, launch_at=at)
        if within:
            story.op(within, at + 5, 10)
        story.kernel(name, at + 200, us, launch_at=at + 6, launch=launch, stream=stream, grid=[blocks, 1, 1])
    return story.trace().gpu.communication.total / 1000


@pytest.mark.parametrize("name", [DISPATCH, COMBINE, "void moe::notify_ranks<8>(int)", "low_latency_combine"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"stream": 7, "launch": "cudaLaunchCooperativeKernel"},
        {"stream": 7, "times": (10, 300, 20, 200, 9, 150, 11, 90)},
        {"stream": 7, "ranks": 1, "blocks": 5000, "within": "c10d::alltoall_base_"},
    ],
    ids=["a stream without computing", "a cooperative launch", "times that differ", "an operator that exchanges"],
)
def test_what_a_kernel_does_tells_whether_it_communicates(name, how):
    assert exchanging(name, **how) == sum(how.get("times", (40,) * 8))


@pytest.mark.parametrize("name", [DISPATCH, COMBINE])
@pytest.mark.parametrize(
    "how",
    [
        {"ranks": 1},
        {"blocks": 5000},
        {"blocks": 0},
        {"stream": 7},
        {"stream": 7, "within": "aten::index_select"},
    ],
    ids=["one rank", "many blocks", "an unknown number of blocks", "beside what computes", "another operator"],
)
def test_a_name_alone_makes_no_communication(name, how):
    assert exchanging(name, **how) == 0


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*> >()",
        "_ZN3cub17DeviceReduceKernelINS_14DispatchReduceIfEE",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(Params)",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(unsigned int)",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
        "void moe_permute_dispatch_kernel<float>()",
        "void vllm::moe::moe_gather_tokens<float>()",
        "moe_scatter_reduce",
    ],
)
def test_kernels_of_one_device_compute_whatever_they_do(name):
    assert exchanging(name, times=(10, 300, 20, 200, 9, 150, 11, 90)) == 0


def test_a_gather_communicates_only_within_an_operator_that_exchanges_data():
    assert exchanging("my_gather_kernel") == 0
    assert exchanging("my_gather_kernel", within="c10d::gather_") == 8 * 40


@pytest.mark.parametrize("category", ["mtia_ccp_events", "MTIA_CCP_EVENTS"])
@pytest.mark.parametrize(
    ("name", "computing", "copying"),
    [("merge", 100, 0), ("event_wait", 0, 0), ("event_record", 0, 0), ("dma_request", 0, 100)],
)
def test_a_wait_in_the_queue_of_an_accelerator_is_no_computation(category, name, computing, copying):
    story = Story()
    story.kernel("work", 1000, 50)
    story.add(category, name, 100, 100, tid=7, pid=0, stream=7, device=0)
    gpu = story.trace().gpu
    assert gpu.compute.total // 1000 == 50 + computing
    assert gpu.copies.total // 1000 == copying
