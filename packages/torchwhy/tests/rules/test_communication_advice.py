"""The advice about an exchange fits the collective and the framework that asks for it."""

import pytest

from tests.rules import case_distributed as case
from tests.traces import Story
from torchwhy.rules.diagnose import diagnose


def finding(story, slug):
    [found] = [found for found in diagnose(story.trace()).findings if found.slug == slug]
    return found


def exchanging(collective, kernel, *, operators=(), labels=(), times=1, us=300, size=25_000_000, training=False):
    """Steps of 1 ms: 400 us of a product, then an exchange by a kernel, with operators before its call."""
    story = Story(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 8})
    for i in range(4):
        at = 1000 * i
        story.step(i + 3, at, 990)
        for label in labels:
            story.note(label, at + 1, 8)
        if training:
            story.note("Optimizer.step#SGD.step", at + 980, 5)
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
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::_embedding_bag",), (), "TrainPipelineSparseDist", "bucket"),
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::embedding",), (), "one half", "TorchRec"),
        ("all_to_allv", "ncclDevKernel_SendRecv", ("aten::_embedding_bag",), ("DistributedDataParallel.forward",),
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


def around_the_call(label):
    story = exchanging("_allgather_base", "ncclDevKernel_AllGather_RING_LL")
    for at in range(0, 4000, 1000):
        story.note("FullyShardedDataParallel.forward", at + 18, 30)
        if label:
            story.note(label, at + 19, 28)
    return finding(story, "exposed-comm").fix


def test_what_the_model_itself_gathers_is_not_fsdps():
    """Tensor parallelism within FSDP: no prefetch hides it."""
    assert "prefetch" not in around_the_call("")
    assert "prefetch" in around_the_call("FullyShardedDataParallel._pre_forward")


def waits(durations, sizes=None):
    """All-to-alls of these durations, one per step of 1 ms."""
    story = Story(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 8})
    for i, us in enumerate(durations):
        at = 1000 * i
        story.step(i + 3, at, 990)
        story.kernel("gemm", at + 50, 100, launch_at=at + 10)
        elements = (sizes or [1_000_000] * len(durations))[i]
        args = {"Collective name": "all_to_allv", "In msg nelems": elements, "Out msg nelems": elements}
        args |= {"dtype": "Float", "Group size": 8, "Process Group Name": "0", "Seq": i}
        story.kernel("ncclDevKernel_SendRecv", at + 200, us, launch_at=at + 20, stream=20, **args)
    return finding(story, "exposed-comm")


def test_an_exchange_that_waits_is_not_helped_by_smaller_types():
    found = waits([700, 10, 650, 720])
    assert "At least 98% of that time is waiting" in found.cause
    assert "bits" not in found.fix
    assert "comes late" in found.fix


def test_exchanges_that_take_longer_for_more_data_do_not_wait():
    found = waits([100, 200, 400, 700], [100_000, 200_000, 400_000, 700_000])
    assert "bits" in found.fix
    assert "record all 8 ranks" in found.cause


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def test_small_all_reduces_behind_clones_are_reduced_as_one_tensor():
    story = exchanging("allreduce", ALL_REDUCE, operators=("aten::clone",), training=True, times=60, us=8, size=4000)
    found = finding(story, "small-collectives")
    assert "240 of them exchange a copy" in found.cause
    assert "one flat tensor" in found.fix


def test_small_all_reduces_of_ddp_need_larger_buckets():
    story = exchanging(
        "allreduce", ALL_REDUCE, labels=("DistributedDataParallel.forward",), training=True, times=60, us=8, size=4000
    )
    found = finding(story, "small-collectives")
    assert "copy" not in found.cause
    assert "bucket_cap_mb" in found.fix


def test_small_exchanges_of_tables_become_one_message():
    story = exchanging("all_to_allv", "ncclDevKernel_SendRecv", times=60, us=8, size=4000)
    assert "all_to_all_single" in finding(story, "small-collectives").fix


def test_ddp_is_still_told_of_its_buckets():
    assert "bucket_cap_mb" in finding(case.under_ddp(), "exposed-comm").fix
