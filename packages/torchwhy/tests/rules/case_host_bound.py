"""Who waits for whom."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def steps(kernel_us, every_us, count=10, launch_lead_us=3, rounds=4, launch="cudaLaunchKernel"):
    """Per step `count` operators `every_us` apart; each kernel begins when launched and the device is free."""
    story = Story()
    free = 0
    for i in range(rounds):
        at = i * (count * every_us + 20)
        story.step(i, at, count * every_us + 20)
        for k in range(count):
            call = at + k * every_us + 10
            story.op("aten::add", call - 5, min(every_us - 2, 20))
            free = max(free, call + 5) + kernel_us
            story.kernel("elementwise", free - kernel_us, kernel_us, launch_at=call, launch_us=4, launch=launch)
    return story


@fires("overhead-bound")
@silent("compute-bound", "one-giant-gap")
def small_kernels_launched_slowly():
    return steps(kernel_us=3, every_us=50)


@fires("overhead-bound")
def kernels_of_some_length_launched_more_slowly():
    return steps(kernel_us=15, every_us=50)


@fires("overhead-bound")
def on_amd():
    return steps(kernel_us=3, every_us=50, launch="hipLaunchKernel")


@fires("compute-bound")
@silent("overhead-bound", "view-dispatch", "launch-outliers")
def long_kernels():
    return steps(kernel_us=200, every_us=50, count=30)


@silent("overhead-bound", "compute-bound")
def short_kernels_that_wait_in_the_queue():
    """They are short, but there is always a next one."""
    return steps(kernel_us=8, every_us=8, count=40)


def training(forward_every_us, kernel_us=5):
    """Four steps: a forward pass of short kernels, then a backward pass and an optimizer ahead of the device."""
    story = Story()
    free = 0
    for at in story.steps(4, 4000):
        for k in range(30):
            call = at + k * forward_every_us + 10
            story.op("aten::mul", call - 5, 12)
            free = max(free, call + 5) + kernel_us
            story.kernel("elementwise", free - kernel_us, kernel_us, launch_at=call)
        begin = at + 30 * forward_every_us + 20
        for k in range(60):
            call = begin + 10 * k
            story.op("autograd::engine::evaluate_function: MulBackward0", call, 9, tid=200)
            story.kernel("gemm", max(free, call + 5), 40, launch_at=call + 2, launch_us=2, tid=200)
            free = max(free, call + 5) + 40
        story.note("Optimizer.step#SGD.step", begin + 620, 100)
        story.op("aten::_fused_sgd_", begin + 630, 50)
        story.kernel("fused", free, 20, launch_at=begin + 640)
        free += 20
    return story


@fires("overhead-bound")
def only_the_forward_pass_is_launched_slowly():
    return training(forward_every_us=40)


@silent("overhead-bound")
def all_phases_are_launched_fast():
    return training(forward_every_us=40, kernel_us=38)


@silent("overhead-bound")
def waiting_for_batches():
    story = Story()
    for at in story.steps(4, 4000):
        story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 1500)
        for k in range(10):
            story.op("aten::mm", at + 1500 + 10 * k, 8)
            story.kernel("sgemm", at + 1510 + 200 * k, 200, launch_at=at + 1502 + 10 * k)
    return story


@silent("overhead-bound")
def the_first_step_is_cold():
    story = Story()
    for k in range(20):
        story.op("aten::mm", 1000 * k, 900)
        story.kernel("sgemm", 1000 * k + 900, 10, launch_at=1000 * k + 890)
    story.step(0, 0, 20_000)
    for i in range(1, 4):
        at = 20_000 + 2000 * (i - 1)
        story.step(i, at, 2000)
        for k in range(20):
            story.op("aten::mm", at + 20 * k, 15)
            story.kernel("sgemm", at + 10 + 100 * k, 98, launch_at=at + 20 * k + 2)
    return story


@fires("view-dispatch")
def views_between_small_kernels():
    story = Story()
    for at in story.steps(4, 1000):
        for k in range(15):
            start = at + 60 * k
            for j in range(4):
                story.op("aten::transpose", start + 8 * j, 7)
            story.op("aten::mm", start + 35, 15)
            story.kernel("sgemm", start + 50, 5, launch_at=start + 40)
    return story


@silent("view-dispatch")
def few_views_between_small_kernels():
    story = Story()
    for at in story.steps(4, 1000):
        for k in range(15):
            story.op("aten::transpose", at + 60 * k, 5)
            story.op("aten::mm", at + 60 * k + 8, 40)
            story.kernel("sgemm", at + 60 * k + 50, 5, launch_at=at + 60 * k + 40)
    return story


@fires("overhead-bound", "first-step-cold")
@silent("compute-bound")
def two_kernels_per_step_and_a_cold_beginning():
    """A small product and an addition, three steps: the first waits 228 us until its first operator."""
    story = Story()
    for i, (at, us, delay) in enumerate([(0, 380, 228), (400, 90, 6), (500, 85, 5)]):
        story.step(i + 2, at, us)
        story.note("matmul_add", at + 3, us - 6)
        for name, start in (("matmul", at + 3 + delay), ("add", at + us - 40)):
            story.op(f"aten::{name}", start, 30)
            story.kernel(name, start + 25, 4, launch_at=start + 15)
    return story
