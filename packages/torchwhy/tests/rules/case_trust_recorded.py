"""What was recorded of the device, and whether its times can be."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def loop(steps=4, kernel_us=400, lost=0, **top):
    """Steps of 1 ms with ten kernels each, of which the first `lost` leave no trace."""
    story = Story(**top)
    for i in range(steps):
        at = 1000 * i
        story.step(i + 3, at, 1000)
        for k in range(10):
            story.op("aten::mm", at + 20 * k + 5, 15)
            if k < lost:
                story.call("cudaLaunchKernel", at + 20 * k + 10)
            else:
                story.kernel("sgemm", at + 100 * k + 15, kernel_us / 10, launch_at=at + 20 * k + 10)
    return story


@fires("no-gpu-activity")
@silent("cpu-only", "dropped-kernels", "steps-missing")
def launches_without_any_kernel():
    return loop(lost=10)


@silent("no-gpu-activity", "dropped-kernels", "pre-window-kernels", "clock-skew", "window-too-short")
def everything_was_recorded():
    return loop()


@fires("dropped-kernels")
def three_of_ten_kernels_are_missing():
    return loop(lost=3)


@silent("dropped-kernels", "no-gpu-activity")
def launches_into_a_graph_being_captured():
    story = loop()
    story.call("cudaStreamBeginCapture", 4000, 5)
    for k in range(20):
        story.call("cudaLaunchKernel", 4010 + 5 * k)
    story.call("cudaStreamEndCapture", 4200, 5)
    return story


@fires("cpu-only")
def no_gpu_in_the_machine():
    story = Story(gpu=None)
    story.op("aten::mm", 0, 100)
    return story


@fires("cpu-only")
def a_gpu_nobody_used():
    story = Story()
    story.op("aten::mm", 0, 100)
    return story


@fires("cpu-only")
@silent("steps-missing", "cpu-hotspot")
def an_empty_file():
    return Story(gpu=None)


@silent("cpu-only")
def device_work_without_launches():
    story = Story()
    story.kernel("sgemm", 0, 100)
    return story


@fires("pre-window-kernels")
def the_device_was_behind():
    story = loop()
    for k in range(20):
        story.kernel("sgemm", -500 + 20 * k, 15)
    return story


@fires("clock-skew")
def kernels_before_their_launch():
    story = Story()
    for k in range(20):
        story.op("aten::mm", 100 * k, 50)
        story.kernel("sgemm", 100 * k - 30, 50, launch_at=100 * k + 10)
    return story


@fires("clock-skew")
def durations_below_zero():
    story = loop()
    for event in story.events:
        if event["cat"] == "kernel":
            event["dur"] = -5
    return story


@silent("clock-skew")
def a_microsecond_too_early():
    story = Story()
    for k in range(20):
        story.kernel("sgemm", 100 * k + 8, 50, launch_at=100 * k + 10)
    return story


def graphs(kernels, wait_us=0):
    """Ten replays of a graph of `kernels` recorded kernels, each of which begins after `wait_us` in the queue."""
    story = Story()
    for at in story.steps(10, 1000):
        launch = story.call("cudaGraphLaunch", at + 10, 20)
        for k in range(kernels):
            event = story.kernel(f"node {k}", at + 40 + wait_us + 20 * k, 20)
            event["args"]["correlation"] = launch["args"]["correlation"]
    return story


@fires("graph-replay-unrecorded")
@silent("overhead-bound")
def graphs_without_their_kernels():
    story = graphs(0)
    for i in range(10):
        story.kernel("copy of the result", 1000 * i + 950, 20, launch_at=1000 * i + 940)
    return story


@fires("graph-replay-unrecorded")
def graphs_with_a_part_of_their_kernels():
    return graphs(3, wait_us=1300)


@silent("graph-replay-unrecorded")
def graphs_of_events_alone():
    """Their nodes are in the trace; none of them is work."""
    story = graphs_without_their_kernels()
    for launch in [event for event in story.events if event["name"] == "cudaGraphLaunch"]:
        correlation = launch["args"]["correlation"]
        story.add("graph_event_node", "event record", launch["ts"] + 40, 1, pid=0, tid=7, correlation=correlation)
    return story


@silent("graph-replay-unrecorded")
def graphs_as_they_should_be():
    return graphs(40)


@fires("no-gpu-activity")
@silent("cpu-only")
def launches_of_another_maker():
    story = Story(gpu=None)
    for k in range(20):
        story.op("aten::mm", 100 * k, 90)
        story.call("launch", 100 * k + 10, cat="privateuse1_driver")
    return story


@silent("cpu-only")
def calls_that_enqueue_something():
    story = Story(gpu=None)
    story.op("aten::mm", 0, 90)
    story.call("aclrtEnqueueTask", 10, cat="privateuse1_runtime")
    return story


@fires("no-gpu-activity")
def counters_instead_of_times():
    story = Story()
    for at in story.steps(3, 1000):
        story.call("cudaLaunchKernel", at + 10)
        story.add("cuda_profiler_range", "gemm", at + 20, 100, tid=7, pid=0, smsp__inst_executed_sum=1.0)
    return story


def capture():
    """A program that captures a graph for most of its window, by small launches, and then replays it."""
    story = Story()
    story.step(1, 0, 3000)
    story.call("cudaStreamBeginCapture", 100, 5)
    for k in range(100):
        story.op("aten::add", 110 + 20 * k, 15)
        story.call("cudaLaunchKernel", 112 + 20 * k, 5)
    story.call("cudaStreamEndCapture", 2200, 5)
    story.call("cudaGraphInstantiateWithFlags", 2210, 90)
    for k in range(5):
        story.kernel("node", 2400 + 100 * k, 90, launch_at=2390 + 10 * k, launch="cudaGraphLaunch")
    return story


@fires("graph-capture")
@silent("overhead-bound", "explicit-sync", "dropped-kernels", "between-steps-gap", "one-giant-gap")
def a_graph_is_captured():
    return capture()


@silent("graph-capture")
def a_graph_that_was_captured_before():
    return graphs(kernels=4)


def sampled(every):
    """One of `every` launches was recorded."""
    story = Story()
    for k in range(60):
        story.op("aten::mm", 100 * k, 50)
        story.kernel("gemm", 100 * k + 20, 60, launch_at=100 * k + 5)
        story.correlation += every - 1
    return story


@fires("sampled-trace")
def one_launch_of_three_hundred():
    return sampled(300)


@silent("sampled-trace")
def other_calls_take_ids_too():
    return sampled(11)


def by_operators(kernels=1):
    """Neither launches nor kernels have a correlation id; both name their operator."""
    story = Story()
    for k in range(30):
        story.op("aten::mm", 100 * k, 50)
        own = {"External id": story.external}
        for _ in range(kernels):
            story.kernel("gemm", 100 * k + 20, 60, launch_at=100 * k + 5, **own)
        story.events[-1 - kernels]["args"] |= own
    for event in story.events:
        event["args"].pop("correlation", None)
    return story


@fires("pre-window-kernels")
def tied_by_the_operators():
    return by_operators()


@fires("pre-window-kernels")
def kernels_without_any_id():
    story = loop()
    for event in story.events[::3]:
        if event["cat"] == "kernel":
            del event["args"]["correlation"]
    return story


@fires("sampled-trace")
def bursts_of_calls():
    """Ten calls in a row, then none of the next two thousand: the usual distance is one."""
    story = Story()
    for k in range(200):
        story.correlation = 2000 * (k // 10) + k % 10
        story.op("aten::mm", 20 * k, 15)
        story.kernel("sgemm", 20 * k + 10, 5, launch_at=20 * k + 2)
    return story


@fires("no-gpu-activity")
@silent("cpu-only")
def waits_for_a_device_whose_work_is_missing():
    story = Story()
    story.op("aten::mm", 0, 100)
    story.call("cudaDeviceSynchronize", 110, 185_000)
    return story


@fires("no-gpu-activity")
@silent("cpu-only")
def attention_of_a_gpu_without_its_kernels():
    story = Story()
    story.op("aten::_flash_attention_forward", 0, 100)
    return story


@silent("no-gpu-activity")
def attention_of_the_processor():
    story = Story()
    story.op("aten::_scaled_dot_product_flash_attention_for_cpu", 0, 100)
    return story


@fires("operators-missing")
def labels_and_kernels_without_operators():
    story = Story()
    for at in story.steps(4, 1000):
        story.note("forward", at + 5, 500)
        story.kernel("sgemm", at + 100, 400, launch_at=at + 10)
    return story


def trained(label, nodes):
    story = Story()
    for at in story.steps(4, 1000):
        story.op("aten::mm", at + 5, 50)
        story.kernel("sgemm", at + 20, 100, launch_at=at + 10)
        story.note(label, at + 100, 500)
        for k in range(nodes):
            story.op("autograd::engine::evaluate_function: MmBackward0", at + 110 + 20 * k, 18, tid=200)
        story.kernel("sgemm", at + 200, 300)
    return story


@fires("operators-missing")
@silent("between-steps-gap", "python-bound", "missed-no-grad")
def a_backward_pass_without_its_thread():
    return trained("## backward ##", 0)


@silent("operators-missing")
def a_backward_pass_with_its_thread():
    return trained("## backward ##", 10)


@silent("operators-missing")
def a_label_that_only_begins_alike():
    return trained("backward_compatible_io", 0)


@silent("operators-missing")
def replays_of_a_graph_alone():
    story = Story()
    for at in story.steps(4, 1000):
        story.kernel("sgemm", at + 100, 400, launch_at=at + 10, launch="cudaGraphLaunch")
    return story


def timed_elsewhere(*long, step_us=1000.0):
    """Recorded steps of a millisecond, and 100 others, of which those with these numbers take as many seconds."""
    times = [[number, dict(long).get(number, step_us / 1e6) * 1e6] for number in range(100)]
    story = Story(gpu=None, torchwhy_unrecorded_steps=times)
    for at in story.steps(4, 1000):
        story.op("aten::mm", at + 10, 900)
    return story


@fires("long-steps-elsewhere")
def a_validation_after_every_fortieth_step():
    return timed_elsewhere((40, 1.5), (80, 1.4))


@silent("long-steps-elsewhere")
def one_step_was_held_up():
    return timed_elsewhere((40, 1.5))


@silent("long-steps-elsewhere")
def the_first_step_is_cold():
    return timed_elsewhere((0, 1.5), (40, 1.5))


@silent("long-steps-elsewhere")
def a_validation_takes_a_tenth_of_the_run():
    return timed_elsewhere((40, 0.11), (80, 0.11), step_us=20_000.0)


@silent("long-steps-elsewhere")
def the_operating_system_holds_short_steps_up():
    return timed_elsewhere((40, 0.05), (80, 0.05), step_us=300.0)
