"""Kernels as such: which takes most, chains of them, too small, too slow, unsteady, twice, in turns."""

from tests.rules.cases import fires, silent
from tests.traces import Story

HALF = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, MulFunctor<float> > >()"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl()::{lambda(float)#1} >()"


def steps(*kernels, count=4, us=2000, note=None, **story):
    """Steps that launch these (name, microseconds, arguments) back to back."""
    made = Story(**story)
    for start in made.steps(count, us, waits=True):
        at = start
        if note:
            made.note(note, start + 2, 300)
        for j, (name, length, *more) in enumerate(kernels):
            made.op("aten::mm", start + 5 + 10 * j, 9)
            made.kernel(name, at + 100, length, launch_at=start + 6 + 10 * j, **(more[0] if more else {}))
            at += length
    return made


@fires("hotspot")
def one_kernel_takes_most():
    return steps((HALF, 900), (ADD, 300))


@silent("hotspot")
def four_kernels_share_the_time():
    return steps((HALF, 250), (ADD, 250), (MUL, 250), (GELU, 250))


@silent("hotspot")
def the_largest_of_very_little():
    return steps((HALF, 60), (ADD, 20))


@fires("kernel-budget")
def three_kernels_instead_of_two():
    return steps((HALF, 100), (ADD, 20), (MUL, 20), kernels_per_step=2)


@silent("kernel-budget")
def as_many_as_declared():
    return steps((HALF, 100), (ADD, 20), kernels_per_step=2)


@silent("kernel-budget")
def nothing_declared():
    return steps((HALF, 100), (ADD, 20))


@fires("elementwise-chain")
def add_multiply_activate():
    return steps((HALF, 300), (ADD, 200), (MUL, 200), (GELU, 200))


@silent("elementwise-chain")
def two_in_a_row():
    return steps((ADD, 200), (MUL, 200), (HALF, 300), (GELU, 200))


@silent("elementwise-chain")
def an_optimizer_is_no_chain():
    return steps((ADD, 200), (MUL, 200), (ADD, 200), (MUL, 200), note="Optimizer.step#SGD.step")


def on_the_cpu(elements, *names):
    story = Story(gpu=None)
    for at in story.steps(3, 1000, waits=True):
        for j, name in enumerate(names):
            story.op(name, at + 10 + 200 * j, 190, **{"Input Dims": [[elements]], "Input type": ["float"]})
    return story


@fires("elementwise-chain")
def add_multiply_tanh_on_the_cpu():
    return on_the_cpu(1_000_000, "aten::add", "aten::mul", "aten::tanh", "aten::mul")


@silent("elementwise-chain")
def a_product_in_between_on_the_cpu():
    return on_the_cpu(1_000_000, "aten::add", "aten::mul", "aten::mm", "aten::mul")


@silent("elementwise-chain")
def small_tensors_on_the_cpu():
    return on_the_cpu(100, "aten::add", "aten::mul", "aten::tanh", "aten::mul")


def grid(blocks, occupancy, name=HALF):
    return {"blocks per SM": blocks, "est. achieved occupancy %": occupancy, "grid": [round(blocks * 108), 1, 1]}


@fires("small-grid")
@silent("occupancy")
def a_quarter_of_the_multiprocessors():
    return steps((HALF, 900, grid(0.25, 10)))


@silent("small-grid", "occupancy")
def a_persistent_kernel():
    return steps((HALF, 900, grid(0.97, 6)))


@silent("small-grid")
def a_small_grid_for_a_moment():
    return steps((HALF, 900, grid(4, 30)), (MUL, 9, grid(0.1, 1)))


@fires("occupancy")
@silent("small-grid")
def few_threads_for_a_simple_kernel():
    return steps((ADD, 900, grid(1.2, 10)))


@silent("occupancy")
def no_figure_is_not_zero():
    return steps((ADD, 900, grid(1.2, 0)))


def shaped(op, kernel, us, dims, kind="c10::BFloat16", count=4):
    story = Story()
    for at in story.steps(count, 2000, waits=True):
        story.op(op, at + 5, 20, **{"Input Dims": dims, "Input type": [kind] * len(dims)})
        story.kernel(kernel, at + 100, us, launch_at=at + 10)
    return story


@fires("low-roofline", "low-mfu")
def a_product_at_a_tenth_of_the_peak():
    """2 * 4096 * 1024 * 4096 operations take 110 us at 312 TFLOPS."""
    return shaped("aten::mm", HALF, 1100, [[4096, 1024], [1024, 4096]])


@silent("low-roofline", "low-mfu")
def a_product_at_two_thirds_of_the_peak():
    return shaped("aten::mm", HALF, 1650, [[8192, 8192], [8192, 2560]])


@silent("low-roofline", "low-mfu")
def no_shapes():
    return steps((HALF, 1100))


@fires("low-roofline")
def an_addition_at_a_fifth_of_the_bandwidth():
    """3 * 400 MB at 2039 GB/s take 588 us; a fifth of that would be three milliseconds, so a smaller one."""
    return shaped("aten::add", ADD, 1500, [[50_000_000], [50_000_000]], kind="float")


@silent("low-roofline")
def an_addition_at_full_bandwidth():
    return shaped("aten::add", ADD, 350, [[50_000_000], [50_000_000]], kind="float")


def lengths(*microseconds, order=(HALF, ADD)):
    story = Story()
    for i, us in enumerate(microseconds):
        start = 3000 * i
        story.step(i, start, 3000)
        names = order if i % 2 == 0 else (HALF, ADD)
        story.kernel(names[0], start + 100, us, launch_at=start + 10)
        story.kernel(names[1], start + 100 + us, 100, launch_at=start + 20)
        story.call("cudaStreamSynchronize", start + 30, us + 170)
    return story


@fires("same-kernel-varies")
def one_step_in_five_is_twice_as_slow():
    return lengths(580, 1084, 580, 1050, 585, 580)


@fires("same-kernel-varies")
def one_of_three_steps_is_twice_as_slow():
    return lengths(580, 1084, 580)


@silent("same-kernel-varies")
def two_steps_tell_nothing():
    return lengths(580, 1084)


@silent("same-kernel-varies")
def steady():
    return lengths(580, 590, 585, 600, 581, 580)


@silent("same-kernel-varies")
def the_steps_differ():
    return lengths(580, 1084, 580, 1050, 585, 580, order=(ADD, HALF))


CONV = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize{}x16_stage4_g1_tensor16x8x8_kernel"


def convolution(*tiles):
    story = Story()
    for at in story.steps(2, 5000, waits=True):
        story.op("aten::cudnn_convolution", at + 10, 1000)
        for j, tile in enumerate(tiles):
            story.kernel(CONV.format(tile), at + 100 + 200 * j, 150, launch_at=at + 20 + 200 * j)
    return story


@fires("cudnn-benchmark")
def four_algorithms_in_one_call():
    return convolution("128x128", "256x64", "64x64", "64x256")


@silent("cudnn-benchmark")
def one_algorithm():
    return convolution("128x128", "128x128")


def streams(second_at, us=400):
    story = Story()
    for at in story.steps(4, 1000, waits=True):
        story.kernel(HALF, at + 50, 400, launch_at=at + 10, stream=7)
        story.kernel(HALF, at + second_at, us, launch_at=at + 20, stream=20)
    return story


@fires("streams-serial")
def one_stream_after_the_other():
    return streams(460)


@silent("streams-serial")
def both_at_once():
    return streams(100)


@silent("streams-serial")
def hardly_anything_on_the_second():
    return streams(460, us=20)


def checkpointed(again_us, frames=False):
    """A backward pass that computes a layer again, then its gradient."""
    story = Story()
    for at in story.steps(3, 2000, waits=True):
        story.kernel(HALF, at + 100, 400, launch_at=at + 10)
        node = "autograd::engine::evaluate_function: {}"
        story.op(node.format("CheckpointFunctionBackward"), at + 100, 200, tid=101)
        if frames:
            story.frame("torch/utils/checkpoint.py(1100): recompute_fn", at + 103, 30, tid=101)
        else:
            story.op("CheckpointFunctionBackward", at + 102, 190, tid=101)
        story.kernel(HALF, at + 500, again_us, launch_at=at + 110, tid=101)
        story.op(node.format("AddmmBackward0"), at + 150, 40, tid=101)
        story.kernel(ADD, at + 520 + again_us, 400, launch_at=at + 160, tid=101)
    return story


@fires("recompute-share")
def a_layer_computed_twice():
    return checkpointed(400)


@fires("recompute-share")
def as_its_frames_tell():
    return checkpointed(400, frames=True)


@silent("recompute-share")
def only_a_little_again():
    return checkpointed(40)


def clocked(mhz, power=(), limited=(), heat=(), work=900):
    """Five steps of 1 ms with a sample of the clock, and of what limits it, in each half."""
    story = Story()
    for at in story.steps(5, 1000, waits=True):
        story.op("aten::mm", at + 1, 20)
        story.kernel(HALF, at + 50, work, launch_at=at + 10)
    series = {"clock (MHz)": mhz, "power (W)": power, "clock limited by power": limited, "clock limited by heat": heat}
    for name, values in series.items():
        for i, value in enumerate(values):
            story.events.append(hardware_counter(name, 500 * i, value))
    if power:
        story.events.append(hardware_counter("power limit (W)", 0, 700))
        story.events.append(hardware_counter("power limit (W)", 5000, 700))
    return story


def hardware_counter(name, at, value, device=0):
    """As Kineto writes them since August 2026."""
    place = {"cat": "hardware_counters", "name": name, "pid": f"GPU {device} Counters", "tid": 0}
    return {"ph": "C", **place, "ts": at, "args": {"": value}}


@fires("clock-throttled")
def the_power_limit_holds_the_clock_down():
    return clocked([1980] * 4 + [1500] * 6, power=[650] * 4 + [698] * 6, limited=[0] * 4 + [1] * 6, heat=[0] * 10)


@fires("clock-throttled")
def heat_holds_the_clock_down():
    return clocked([1980] * 4 + [1200] * 6, limited=[0] * 10, heat=[0] * 4 + [1] * 6)


@fires("clock-throttled")
def a_clock_falls_for_an_unknown_reason():
    return clocked([1980] * 4 + [1500] * 6)


@silent("clock-throttled")
def a_clock_that_swings_by_a_little():
    return clocked([1980, 1935] * 5, power=[698] * 10)


@silent("clock-throttled")
def a_clock_that_rests_while_nothing_runs():
    return clocked([1980, 345] * 5, work=300)
