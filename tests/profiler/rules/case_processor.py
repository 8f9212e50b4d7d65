"""Programs on the CPU."""

from profiler.rules.cases import fires, silent
from profiler.traces import Story


def program(calls, steps=3, gpu=None):
    """Steps made of these (operator, duration, pause after it)."""
    story = Story(gpu=gpu)
    at = 0
    for i in range(steps):
        start = at
        for name, us, pause in calls:
            story.op(name, at, us, **{"Input Dims": "[[8, 64, 56, 56]]", "Input type": '["float"]'})
            at += us + pause
        story.step(i, start, at - start)
    return story


@fires("cpu-hotspot")
@silent("cpu-copies")
def a_sort_takes_most():
    return program([("aten::sort", 800, 2), ("aten::add", 100, 2), ("aten::mm", 100, 2)])


@fires("cpu-hotspot")
def convolutions_take_most():
    return program([("aten::mkldnn_convolution", 800, 2), ("aten::relu", 100, 2), ("aten::add", 100, 2)])


@silent("cpu-hotspot", "cpu-copies", "python-bound")
def even_work():
    names = ["mm", "add", "relu", "sum", "softmax", "mul"]
    return program([(f"aten::{name}", 100, 2) for name in names])


@silent("cpu-hotspot")
def an_operator_that_calls_others():
    """Its own time is short."""
    story = program([("aten::linear", 1000, 2)])
    for i in range(3):
        for k, name in enumerate(["t", "mm", "add", "relu"]):
            story.op(f"aten::{name}", 1002 * i + 2 + 245 * k, 240)
    return story


@silent("cpu-hotspot", "cpu-copies", "cpu-only")
def on_a_gpu():
    story = program([("aten::sort", 800, 2), ("aten::copy_", 400, 2)], gpu="NVIDIA A100-SXM4-80GB")
    story.kernel("sort", 10, 900, launch_at=5)
    return story


@fires("cpu-copies")
@silent("cpu-hotspot")
def conversions_in_every_step():
    story = program([("aten::to", 400, 2), *[(f"aten::{name}", 200, 2) for name in ("mm", "add", "sum")]])
    for i in range(3):
        story.op("aten::_to_copy", 1008 * i + 2, 396)
        story.op("aten::copy_", 1008 * i + 4, 390)
    return story


@fires("python-bound")
def python_takes_longer_than_its_operators():
    return program([("aten::add", 5, 15)] * 40)


@silent("python-bound")
def operators_follow_closely():
    return program([("aten::add", 20, 5)] * 40)


@silent("python-bound")
def few_operators():
    return program([("aten::add", 5, 15)] * 5)


@silent("python-bound")
def stacks_were_recorded():
    story = program([("aten::add", 5, 15)] * 40)
    for k in range(300):
        story.frame("model.py(3): forward", 8 * k, 7)
    return story


def multiplications(us, elements=196_608, count=20, gpu=None):
    """A step of operators that read and write 4 bytes per element."""
    story = Story(gpu=gpu)
    story.step(3, 0, us * count + 10)
    for i in range(count):
        story.op("aten::mul", us * i, us - 1, **{"Input Dims": [[elements], []], "Input type": ["float", "Scalar"]})
    return story


@fires("starved-threads")
def eight_milliseconds_for_a_megabyte():
    return multiplications(8000)


@silent("starved-threads")
def at_a_gigabyte_per_second():
    return multiplications(1500)


@silent("starved-threads")
def small_ones_on_one_thread():
    return multiplications(8000, elements=20_000)


@silent("starved-threads")
def a_few_that_were_interrupted():
    story = multiplications(300, count=40)
    story.events[0]["dur"] = 90_000
    for i in range(9):
        story.op("aten::mul", 12_010 + 8000 * i, 7900, **{"Input Dims": [[196_608]], "Input type": ["float"]})
    return story


@silent("cpu-hotspot")
def waiting_for_other_ranks():
    return program([("c10d::allreduce_", 900, 2), ("aten::add", 60, 2), ("aten::relu", 60, 2)])


@silent("python-bound", "cpu-hotspot")
def between_operators_ranks_exchange():
    story = program([("aten::add", 5, 15)] * 40)
    story.note("gloo:all_reduce", 0, 2400, tid=200)
    return story


@silent("between-steps-gap")
def nothing_but_steps_was_recorded():
    """Threads of its own may have computed all the time."""
    story = Story(gpu=None)
    for i in range(4):
        story.step(i, 1000 * i, 1000)
    return story
