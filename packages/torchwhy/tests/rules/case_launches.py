"""Launching calls."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def loop(slow_us, steps=4, kernel_us=60):
    """Ten kernels per step; the fifth launch takes `slow_us`, and its kernel begins when the call returns."""
    story = Story()
    for at in story.steps(steps, 1000):
        for k in range(10):
            call = at + 60 * k + (slow_us if k > 4 else 0)
            us = slow_us if k == 4 else 4
            story.kernel("sgemm", call + us + 2, kernel_us - 6, launch_at=call, launch_us=us)
    return story


@fires("launch-outliers")
def one_slow_launch_per_step():
    return loop(300)


@silent("launch-outliers")
def launches_of_forty_microseconds():
    return loop(40)


@silent("launch-outliers")
def slow_launches_while_the_device_works():
    story = Story()
    for at in story.steps(4, 1000):
        story.kernel("sgemm", at + 20, 980, launch_at=at + 5)
        story.kernel("relu", at + 1000, 20, launch_at=at + 100, launch_us=500)
    return story


def queue(depth):
    story = Story()
    story.step(1, 0, 10 * depth)
    for k in range(depth + 50):
        story.kernel("sgemm", 10 + 20 * k, 20, launch_at=1 + 0.001 * k, launch_us=0.001)
    return story


@fires("queue-saturated", "compute-bound")
def the_host_is_far_ahead():
    return queue(1020)


@silent("queue-saturated")
def the_host_is_ahead():
    return queue(500)


def asking(questions):
    story = Story()
    for at in story.steps(3, 1000):
        for k in range(20):
            for q in range(questions):
                story.call("cudaEventQuery", at + 50 * k + 3 * q, 2, tid=200)
            story.kernel("sgemm", at + 50 * k + 10, 40, launch_at=at + 50 * k + 2)
    return story


@fires("runtime-query-noise")
def polling_a_stream():
    return asking(8)


@silent("runtime-query-noise")
def an_occupancy_question_now_and_then():
    story = asking(0)
    for k in range(10):
        story.call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", 100 * k, 1)
    return story


@silent("runtime-query-noise")
def setting_up_the_driver():
    story = asking(0)
    story.call("cudaDriverGetVersion", -5000, 4000)
    return story


def queued(gap_us, steps=4):
    """Everything is launched at once; each kernel begins `gap_us` after the one before."""
    story = Story()
    for at in story.steps(steps, 2000):
        story.call("cudaStreamWaitEvent", at + 1, 1)
        for k in range(10):
            start = at + 100 + k * (150 + gap_us)
            story.kernel("sgemm", start, 150, launch_at=at + 5 + 4 * k, launch_us=2, stream=7 + k % 2)
    return story


@fires("stalled-queue")
@silent("overhead-bound", "between-steps-gap")
def streams_wait_for_each_other():
    return queued(40)


@silent("stalled-queue")
def from_one_kernel_to_the_next():
    return queued(3)


@silent("launch-outliers")
def graphs_are_launched():
    """One launch for sixty kernels takes 80 us."""
    story = Story()
    for at in story.steps(4, 990, every=1000):
        graph = story.call("cudaGraphLaunch", at + 10, 80)["args"]["correlation"]
        for k in range(60):
            event = story.kernel("gemm", at + 100 + 14 * k, 13)
            event["args"]["correlation"] = graph
    return story


@silent("overhead-bound", "between-steps-gap", "stalled-queue", "one-giant-gap")
def work_from_before_the_recording():
    """The device does nothing that was recorded until 2.5 ms after the first launch has returned."""
    story = Story()
    story.op("aten::addmm", 0, 310)
    for k in range(12):
        story.kernel("gemm", 2810 + 20 * k, 20, launch_at=300 + 10 * k, launch_us=8)
    story.op("aten::relu", 310, 200)
    return story


@silent("stalled-queue")
def the_first_launch_is_late():
    story = Story()
    story.step(1, 0, 3100)
    story.op("aten::addmm", 0, 2800)
    for k in range(12):
        story.kernel("gemm", 2812 + 20 * k, 20, launch_at=2795 + 2 * k, launch_us=1)
    return story


def stands_still_once(us, every):
    """Three steps of ten short kernels; before one of them the host does something else."""
    story, at = Story(), 0
    for i in range(3):
        begin = at
        for k in range(10):
            at += us if (i, k) == (1, 5) else 0
            story.op("aten::add", at, 30)
            story.kernel("add", at + 26, 30, launch_at=at + 20)
            at += every
        story.step(i, begin, at - begin)
    return story


@silent("overhead-bound")
def one_stretch_of_a_busy_device():
    return stands_still_once(1200, every=33)


@fires("overhead-bound")
def one_stretch_among_late_launches():
    return stands_still_once(1200, every=60)


def from_the_beginning(first_us=300_000, **call):
    """A recording that begins with the program: a long call, then two operators."""
    story = Story()
    story.call(call.get("name", "cudaDeviceGetStreamPriorityRange"), 100, first_us)
    for k in range(2):
        at = 100 + first_us + 2000 * k
        story.op("aten::mm", at + 10, 1000)
        story.kernel("sgemm", at + 30, 900, launch_at=at + 20)
    return story


@fires("first-device-call")
def the_context_is_made_in_the_recording():
    return from_the_beginning()


@silent("first-device-call")
def the_first_call_is_short():
    return from_the_beginning(60_000)


@silent("first-device-call")
def a_wait_for_work_of_before():
    return from_the_beginning(name="cudaDeviceSynchronize")


@silent("first-device-call")
def a_long_call_after_the_first_work():
    story = Story()
    story.kernel("sgemm", 30, 900, launch_at=20)
    story.call("cudaDeviceGetStreamPriorityRange", 1000, 300_000)
    story.kernel("sgemm", 301_030, 900, launch_at=301_020)
    return story


@fires("first-step-cold")
@silent("launch-outliers")
def a_kernel_is_loaded_in_a_cold_first_step():
    """One fact, one finding: the slow launch is what makes the first step cold."""
    story = Story()
    story.step(0, 0, 9000)
    story.kernel("relu", 8010, 50, launch_at=1000, launch_us=7000)
    for i in range(1, 3):
        at = 8000 + 1000 * i
        story.step(i, at, 1000)
        for k in range(10):
            story.op("aten::mm", at + 90 * k, 80)
            story.kernel("sgemm", at + 90 * k + 15, 60, launch_at=at + 90 * k + 5)
    return story
