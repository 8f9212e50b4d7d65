"""The profiler's own work, and what "idle" means."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def loop(steps=4, shift=0, offset=0):
    """Steps of 1 ms; the device is busy for 900 us of each."""
    story = Story()
    for at in story.steps(steps, 1000):
        story.op("aten::mm", at + 5, 20)
        story.kernel("sgemm", at + 50 + shift + offset, 900 - shift, launch_at=at + 10)
    return story


@fires("profiler-overhead")
def stacks_were_recorded():
    story = loop()
    for i in range(300):
        story.frame(f"model.py({i}): forward", 10 * i, 9)
    return story


@silent("profiler-overhead")
def few_frames():
    story = loop()
    for i in range(50):
        story.frame(f"model.py({i}): forward", 10 * i, 9)
    return story


@fires("buffer-request")
def buffers_between_kernels():
    story = loop(shift=300)
    story.overhead("Activity Buffer Request", 1050, 250)
    return story


@silent("buffer-request")
def buffers_while_the_device_works():
    story = loop()
    story.overhead("Activity Buffer Request", 1100, 250)
    return story


@fires("closing-sync")
@silent("explicit-sync")
def the_profiler_waits_at_its_end():
    story = loop()
    story.call("cudaDeviceSynchronize", 4005, 1000)
    return story


@silent("closing-sync")
def the_program_waits_at_the_end_of_its_step():
    story = loop()
    story.note("epoch end", 3950, 500)
    story.call("cudaDeviceSynchronize", 3960, 400)
    return story


@fires("lazy-loading")
def kernels_are_loaded():
    story = loop()
    story.overhead("Lazy Function Loading", 1000, 300)
    return story


@silent("lazy-loading")
def loading_before_the_window():
    story = loop()
    story.overhead("Lazy Function Loading", -1000, 300)
    return story


@fires("one-giant-gap")
@silent("overhead-bound")
def one_long_stop():
    story = Story()
    for i in range(20):
        at = 1000 * i + (30_000 if i >= 10 else 0)
        story.op("aten::mm", at, 20)
        story.kernel("sgemm", at + 50, 900, launch_at=at + 10)
    story.op("aten::cudnn_convolution", 10_000, 30_000)
    return story


@silent("one-giant-gap")
def even_gaps():
    return loop(shift=400)


@silent("one-giant-gap")
def a_kernel_of_less_than_no_time():
    """What looks like the longest gap lies outside of the window."""
    story = Story()
    story.op("", 0, 1)
    story.kernel("gemm", 0.001, 5, launch_at=0)
    story.kernel("k2", 10, -5)
    return story
