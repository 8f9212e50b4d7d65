"""Copies between host and device, and on the device."""

from tests.rules.cases import fires, silent
from tests.traces import Story

GEMM = "ampere_sgemm_128x64_nn"


def steps(body, count=4, us=1000, **story):
    """Steps one after another; `body(story, at)` fills each."""
    made = Story(**story)
    for at in made.steps(count, us, waits=True):
        body(made, at)
    return made


def copying(kind, size, us, alone=True):
    """Each step copies for `us` microseconds, by itself or under a kernel, and computes."""

    def body(story, at):
        story.op("aten::copy_", at + 10, 30)
        story.copy(kind, at + 50, us, size, launch_at=at + 20)
        if alone:
            story.kernel(GEMM, at + 50 + us, 300, launch_at=at + 60)
        else:
            story.kernel(GEMM, at + 40, 800, launch_at=at + 5, stream=8)

    return steps(body)


@fires("pageable-copy")
@silent("transfer-share")
def batches_from_pageable_memory():
    story = copying("HtoD (Pageable -> Device)", 2_000_000, 200)
    story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 5)
    return story


@silent("pageable-copy")
def batches_from_pinned_memory():
    return copying("HtoD (Pinned -> Device)", 4_000_000, 200)


@silent("pageable-copy", "many-tiny-copies", "transfer-share")
def a_scalar_read_back():
    return copying("DtoH (Device -> Pageable)", 4, 20)


@silent("pageable-copy", "transfer-share", "low-bandwidth")
def a_copy_beside_a_kernel():
    return copying("HtoD (Host -> Device)", 8_000_000, 300, alone=False)


@fires("low-bandwidth")
def pinned_but_slow():
    return copying("HtoD (Pinned -> Device)", 1_000_000, 300)


@silent("low-bandwidth")
def pinned_at_full_speed():
    return copying("HtoD (Pinned -> Device)", 7_000_000, 300)


@silent("low-bandwidth")
def bytes_not_recorded():
    return copying("HtoD (Host -> Device)", 0, 300)


@fires("transfer-share")
def an_eighth_of_the_time_in_copies():
    return copying("HtoD (Pinned -> Device)", 3_000_000, 130)


@fires("transfer-share")
@silent("pageable-copy")
def outputs_go_to_pageable_memory():
    return copying("DtoH (Device -> Pageable)", 3_000_000, 130)


@fires("pageable-copy")
@silent("transfer-share")
def few_outputs_go_to_pageable_memory():
    return copying("DtoH (Device -> Pageable)", 1_000_000, 30)


@silent("pageable-copy", "transfer-share")
def what_ran_beside_the_copies_was_lost():
    story = copying("HtoD (Pageable -> Device)", 2_000_000, 200)
    for at in range(0, 4000, 1000):
        for k in range(3):
            story.call("cudaLaunchKernel", at + 20 + 10 * k)
    return story


def waited_for(launch, kind, after=False):
    def body(story, at):
        story.op("aten::copy_", at + 10, 200)
        story.copy(kind, at + 30, 170, 4_000_000, launch_at=at + 20)
        story.events[-2]["name"] = launch
        if after:
            story.call("cudaStreamSynchronize", at + 26, 180)
        else:
            story.events[-2]["dur"] = 180
        story.kernel(GEMM, at + 300, 300, launch_at=at + 250)

    return steps(body)


@fires("sync-copy")
def pinned_memory_without_non_blocking():
    return waited_for("cudaMemcpyAsync", "HtoD (Pinned -> Device)", after=True)


@fires("sync-copy")
def the_waiting_call_of_rocm():
    return waited_for("hipMemcpyWithStream", "HtoD (Host -> Device)")


@silent("sync-copy")
def the_call_returns_at_once():
    return copying("HtoD (Pinned -> Device)", 4_000_000, 170)


def filling(name):
    def body(story, at):
        story.kernel(GEMM, at + 50, 300, launch_at=at + 20)
        story.fill(at + 400, 10, launch_at=at + 380, launch=name)

    return steps(body)


@fires("sync-memset")
def an_extension_fills_and_waits():
    return filling("cudaMemset")


@silent("sync-memset")
def an_asynchronous_fill():
    return filling("cudaMemsetAsync")


def pair(first, second, sizes=(400_000, 400_000), before=True, after=True):
    def body(story, at):
        if before:
            story.kernel(GEMM, at + 20, 80, launch_at=at + 10)
        story.copy(first, at + 100, 60, sizes[0], launch_at=at + 90, launch_us=71)
        story.copy(second, at + 600, 60, sizes[1], launch_at=at + 590, launch_us=71)
        if after:
            story.kernel(GEMM, at + 700, 200, launch_at=at + 650)

    return steps(body)


@fires("device-ping-pong")
def to_the_host_and_back():
    return pair("DtoH (Device -> Pageable)", "HtoD (Pageable -> Device)")


@silent("device-ping-pong")
def input_and_output_of_one_size():
    return pair("HtoD (Pageable -> Device)", "DtoH (Device -> Pageable)")


@silent("device-ping-pong")
def steps_that_begin_with_the_last_ones_output():
    """An output is fetched, then the next input of the same size is sent."""
    return pair("DtoH (Device -> Pageable)", "HtoD (Pageable -> Device)", before=False)


@silent("device-ping-pong")
def steps_that_end_with_the_next_ones_input():
    return pair("DtoH (Device -> Pageable)", "HtoD (Pageable -> Device)", after=False)


@silent("device-ping-pong")
def other_sizes():
    return pair("DtoH (Device -> Pageable)", "HtoD (Pageable -> Device)", sizes=(400_000, 80_000))


def small_copies(between):
    def body(story, at):
        for i in range(24):
            story.copy("HtoD (Pinned -> Device)", at + 20 + 20 * i, 2, 4000, launch_at=at + 10 + 20 * i)
            if between:
                story.kernel(GEMM, at + 23 + 20 * i, 5, launch_at=at + 15 + 20 * i)

    return steps(body)


@fires("many-tiny-copies")
def field_after_field():
    return small_copies(between=False)


@silent("many-tiny-copies")
def a_kernel_between_the_copies():
    return small_copies(between=True)


def seeded(second, stream=7):
    def body(story, at):
        story.op("aten::addmm", at + 10, 60)
        story.copy("DtoD (Device -> Device)", at + 50, 33, 32_000_000, launch_at=at + 20)
        story.kernel(second, at + 84, 500, launch_at=at + 30, stream=stream)

    return steps(body)


@fires("hidden-dtod-before-gemm")
def a_bias_of_a_compiled_product():
    return seeded("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn")


@silent("hidden-dtod-before-gemm")
def a_copy_on_another_stream():
    return seeded("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", stream=9)


def cloning(outer):
    def body(story, at):
        story.op(outer, at + 10, 40)
        story.op("aten::clone", at + 15, 20)
        story.op("aten::copy_", at + 20, 10)
        story.copy("DtoD (Device -> Device)", at + 60, 100, 80_000_000, launch_at=at + 25)
        story.kernel(GEMM, at + 200, 500, launch_at=at + 40)

    return steps(body)


@fires("out-of-place-clone")
def masked_fill_copies_its_input():
    return cloning("aten::masked_fill")


@silent("out-of-place-clone")
def a_clone_that_was_asked_for():
    return cloning("my_operator")


CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)"


def concatenating(us):
    def body(story, at):
        story.op("aten::cat", at + 10, 20)
        story.kernel(CAT, at + 50, us, launch_at=at + 15)
        story.kernel(GEMM, at + 60 + us, 400, launch_at=at + 20)

    return steps(body)


@fires("dtod-volume")
def much_is_concatenated():
    return concatenating(200)


@silent("dtod-volume")
def little_is_concatenated():
    return concatenating(25)


@silent("dtod-volume")
def a_cast_is_no_copy():
    def body(story, at):
        story.op("aten::to", at + 10, 40)
        story.op("aten::_to_copy", at + 12, 36)
        story.op("aten::copy_", at + 14, 30)
        story.kernel(CAT, at + 50, 300, launch_at=at + 20)
        story.kernel(GEMM, at + 400, 400, launch_at=at + 60)

    return steps(body)


def made_on_host(shape, maker="aten::zeros", filler="aten::zero_"):
    def body(story, at):
        story.op(maker, at + 10, 40, **{"Input Dims": [[], []], "Input type": ["", ""]})
        story.op(filler, at + 20, 25, **{"Input Dims": [shape], "Input type": ["float"]})
        story.op("aten::to", at + 60, 60, **{"Input Dims": [[100, 100], []], "Input type": ["float", ""]})
        story.op("aten::_to_copy", at + 62, 50, **{"Input Dims": [[100, 100], []], "Input type": ["float", ""]})
        story.op("aten::copy_", at + 64, 40, **{"Input Dims": [[100, 100]] * 2, "Input type": ["float", "float"]})
        story.copy("HtoD (Pageable -> Device)", at + 80, 10, 40_000, launch_at=at + 70)
        story.kernel(GEMM, at + 200, 500, launch_at=at + 150)

    return steps(body)


@fires("create-on-cpu-then-copy")
def zeros_and_then_to():
    return made_on_host([100, 100])


@silent("create-on-cpu-then-copy")
def zeros_of_another_size():
    return made_on_host([10, 10])


@silent("create-on-cpu-then-copy")
def data_from_elsewhere():
    return made_on_host([100, 100], maker="aten::index_select", filler="aten::index_select")


def adding_on_the_cpu(us):
    """A product that copies its bias first, for so many microseconds of its 800."""
    story = Story(gpu=None)
    for at in story.steps(4, 990, every=1000, waits=True):
        story.op("aten::addmm", at + 10, 800)
        story.op("aten::copy_", at + 15, us)
    return story


@fires("hidden-dtod-before-gemm")
def a_bias_on_the_cpu():
    return adding_on_the_cpu(60)


@silent("hidden-dtod-before-gemm")
def a_small_bias_on_the_cpu():
    return adding_on_the_cpu(5)
