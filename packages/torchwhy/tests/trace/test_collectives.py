"""Collectives of one rank: kinds, sizes, groups, bandwidths; formats of several years."""

import math

import pytest

from tests.traces import Story
from torchwhy.trace.derived.collectives import bus_factor, collectives_of
from torchwhy.trace.meaning.communication import collective_name

RING = "ncclDevKernel_{}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def one(story):
    [found] = story.trace().derived(collectives_of)
    return found


def told(name, into, out, size=4, dtype="Float", seq=7, us=100, kernel="AllReduce"):
    """A kernel that says itself what it does, as libkineto writes since 2024."""
    story = Story(rank=0)
    args = {"Collective name": name, "In msg nelems": into, "Out msg nelems": out, "dtype": dtype, "Group size": size}
    args |= {"Process Group Name": "3", "Process Group Ranks": "[0, 1, 2, 3]", "Seq": seq}
    story.kernel(RING.format(kernel), 50, us, launch_at=10, stream=20, **args)
    return one(story)


def test_a_kernel_tells_everything():
    found = told("allreduce", 1_000_000, 1_000_000)
    assert (found.name, found.bytes, found.dtype, found.group, found.members) == (
        "all_reduce", 4_000_000, "float", "3", "[0, 1, 2, 3]",
    )  # fmt: skip
    assert (found.group_size, found.seq, found.duration) == (4, 7, 100_000)
    assert found.launch >= 0
    assert found.algorithm_bandwidth == pytest.approx(40.0)
    assert found.bus_bandwidth == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("name", "into", "out", "size"),
    [
        ("_allgather_base", 250, 1000, 4000),  # the output of all ranks
        ("_reduce_scatter_base", 1000, 250, 4000),  # the input of all ranks
        ("all_to_allv", 1000, 1000, 4000),
        ("broadcast", 1000, 1000, 4000),
        ("gather", 250, 1000, 4000),
        ("allgather_into_tensor_coalesced", 250, 1000, 4000),
    ],
)
def test_sizes_are_those_of_nccl_tests(name, into, out, size):
    assert told(name, into, out).bytes == size


@pytest.mark.parametrize(
    ("dtype", "width"),
    [("BFloat16", 2), ("Half", 2), ("Double", 8), ("Byte", 1), ("Float8_e4m3fn", 1), ("Long", 8), ("c10::Half", 2)],
)
def test_widths_of_types(dtype, width):
    assert told("allreduce", 1000, 1000, dtype=dtype).bytes == 1000 * width


def test_an_unknown_type_has_no_size():
    found = told("allreduce", 1000, 1000, dtype="Quaternion")
    assert found.bytes == -1
    assert math.isnan(found.bus_bandwidth)


def test_the_call_on_the_host_tells_where_the_kernel_does_not():
    story = Story(rank=0)
    args = {"Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float", "Seq": 3}
    story.op("record_param_comms", 5, 20, **args)
    story.kernel(RING.format("AllReduce"), 50, 10, launch_at=10, stream=20)
    found = one(story)
    assert (found.name, found.bytes, found.seq) == ("all_reduce", 40, 3)
    assert found.group_size == 2  # the world


def test_shapes_tell_in_traces_of_2023():
    story = Story(rank=0)
    args = {"Input Dims": [[65536, 384], [], []], "Input type": ["float", "Scalar", ""]}
    story.op("record_param_comms", 5, 30, **args)
    story.note("nccl:_reduce_scatter_base", 6, 25)
    story.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", 50, 10, launch_at=10)
    found = one(story)
    assert (found.name, found.bytes, found.dtype) == ("reduce_scatter", 65536 * 384 * 4, "float")


def test_a_kernel_without_its_launch():
    story = Story()
    story.kernel(RING.format("AllGather"), 50, 10)
    found = one(story)
    assert (found.name, found.launch, found.bytes, found.group_size, found.seq) == ("all_gather", -1, -1, 0, -1)


def test_the_default_kernel_of_old_nccl_tells_nothing():
    """It served what had no kernel of its own; only the host's call knows what that was."""
    story = Story()
    story.kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", 50, 10)
    assert one(story).name == "other"


def test_collectives_of_a_cpu():
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 1, "world_size": 2})
    story.note("gloo:all_reduce", 50, 10, tid=7)
    found = one(story)
    assert (found.name, found.duration, found.group_size) == ("all_reduce", 10_000, 2)


def test_other_kernels_are_none():
    story = Story()
    story.kernel("ampere_sgemm_128x64_nn", 50, 10, launch_at=10)
    assert story.trace().derived(collectives_of) == ()


@pytest.mark.parametrize("dims", ['"what"', "[[1.5]]", "3", "[null]", '[["a"]]', "[[]]"])
def test_nonsense_in_arguments_is_no_size(dims):
    story = Story(rank=0)
    story.op("record_param_comms", 5, 30, **{"Input Dims": dims, "Input type": dims})
    story.kernel(RING.format("AllReduce"), 50, 10, launch_at=10)
    assert one(story).bytes == -1


def test_a_table_of_them():
    story = Story(rank=0)
    story.kernel(RING.format("AllReduce"), 50, 10, launch_at=10)
    [row] = story.trace().collectives().rows()
    assert row["name"] == "all_reduce"
    assert row["bytes"] is None
    assert str(story.trace().collectives())


def test_factors_of_the_bus():
    assert bus_factor("all_reduce", 2) == 1.0
    assert bus_factor("all_reduce", 1) == 0.0
    assert bus_factor("reduce_scatter", 4) == 0.75
    assert math.isnan(bus_factor("all_reduce", 0))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nccl:all_reduce", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", "broadcast"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce"),
        ("gloo:barrier", "barrier"),
        ("all_to_allv", "all_to_all"),
        ("send", "send"),
        ("ncclDevKernel_Generic", ""),
        ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(RankData*)", "all_reduce"),
        ("void deep_ep::intranode::dispatch<8>()", "all_to_all"),
        ("userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int, int)", "all_gather"),
        ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<2>(int, int)", "reduce_scatter"),
        ("userbuffers_fp16_sum_inplace_gpu_mc(int, int)", "all_reduce"),
    ],
)
def test_names_have_one_form(name, found):
    assert collective_name(name) == found
