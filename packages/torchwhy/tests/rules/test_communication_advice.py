"""The advice about an exchange fits the collective and the framework that asks for it."""

import pytest

from tests.rules import case_distributed as case
from tests.traces import Story
from torchwhy.rules.diagnose import diagnose


def finding(story, slug):
    [found] = [found for found in diagnose(story.trace()).findings if found.slug == slug]
    return found


def exchanging(collective, kernel, *, operators=(), labels=(), times=1, us=300, size=25_000_000):
    """Steps of 1 ms: 400 us of a product, then an exchange by a kernel, with operators before its call."""
    story = Story(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 8})
    for i in range(4):
        at = 1000 * i
        story.step(i + 3, at, 990)
        for label in labels:
            story.note(label, at + 1, 8)
        story.kernel("gemm", at + 50, 300, launch_at=at + 10)
        for k in range(times):
            before = at + 20 + 8 * k
            for j, name in enumerate(operators):
                story.op(name, before + j, 1)
            args = {"Collective name": collective, "In msg nelems": size // 4, "Out msg nelems": size // 4}
            args |= {"dtype": "Float", "Group size": 8, "Process Group Name": "0", "Seq": i * times + k}
            story.op("record_param_comms", before + 3, 4, **args)
            story.kernel(kernel, at + 400 + us * k, us, launch_at=before + 4, stream=20, **args)
    return story


@pytest.mark.parametrize(
    ("collective", "kernel", "operators", "labels", "says", "never"),
    [
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::embedding",), (), "TrainPipelineSparseDist", "bucket"),
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::mm",), (), "experts", "bucket"),
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::embedding",), ("DistributedDataParallel.forward",),
         "TrainPipelineSparseDist", "bucket"),
        ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", (), ("DistributedDataParallel.forward",),
         "bucket_cap_mb", "FSDP"),
        ("_allgather_base", "ncclDevKernel_AllGather_RING_LL", (), ("FullyShardedDataParallel.forward",),
         "forward_prefetch=True", "bucket"),
        ("_allgather_base", "ncclDevKernel_AllGather_RING_LL", (), ("FSDP::pre_forward (layers.0)",),
         "set_modules_to_forward_prefetch", "backward_prefetch="),
        ("allreduce", "void vllm::cross_device_reduce_1stage<half, 8>()", (), (), "tensor parallelism", "bucket"),
        ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", ("aten::native_dropout",), (), "async_op", "bucket"),
    ],
)  # fmt: skip
def test_advice_fits_the_collective_and_the_framework(collective, kernel, operators, labels, says, never):
    found = finding(exchanging(collective, kernel, operators=operators, labels=labels), "exposed-comm")
    assert says in found.fix
    assert never not in found.fix


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def test_small_all_reduces_behind_clones_are_reduced_as_one_tensor():
    story = exchanging("allreduce", ALL_REDUCE, operators=("aten::clone",), times=60, us=8, size=4000)
    found = finding(story, "small-collectives")
    assert "240 of them exchange a copy" in found.cause
    assert "one flat tensor" in found.fix


def test_small_all_reduces_of_ddp_need_larger_buckets():
    story = exchanging("allreduce", ALL_REDUCE, labels=("DistributedDataParallel.forward",), times=60, us=8, size=4000)
    found = finding(story, "small-collectives")
    assert "copy" not in found.cause
    assert "bucket_cap_mb" in found.fix


def test_small_exchanges_of_tables_become_one_message():
    story = exchanging("all_to_allv", "ncclDevKernel_SendRecv", times=60, us=8, size=4000)
    assert "all_to_all_single" in finding(story, "small-collectives").fix


def test_ddp_is_still_told_of_its_buckets():
    assert "bucket_cap_mb" in finding(case.under_ddp(), "exposed-comm").fix
