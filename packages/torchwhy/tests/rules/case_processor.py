"""Programs on the CPU."""

from tests.rules.cases import fires, silent
from tests.traces import Story


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


def drops(trained):
    story = program([("aten::dropout", 800, 2), ("aten::add", 100, 2), ("aten::mm", 100, 2)])
    for i in range(3 if trained else 0):
        story.op("aten::native_dropout", 1006 * i + 2, 700, Sequence_number=5 + i)
        node = "autograd::engine::evaluate_function: NativeDropoutBackward0"
        story.op(node, 1006 * i + 900, 50, Sequence_number=5 + i, Fwd_thread_id=1)
    return story


@silent("cpu-hotspot")
def a_short_operator_loses_its_processor():
    """Of a hundred calls of 5 us seven last as long as another program's turn."""
    story, at = Story(gpu=None), 0
    for i in range(5):
        begin = at
        for k in range(20):
            us = 8000 if (20 * i + k) % 14 == 13 else 5
            story.op("aten::clamp_min", at, us, **{"Input Dims": "[[8, 64], []]", "Input type": '["float"]'})
            at += us + 10
        story.op("aten::mm", at, 2000)
        at += 2010
        story.step(i, begin, at - begin)
    return story


@fires("cpu-hotspot")
def convolutions_take_most():
    return program([("aten::mkldnn_convolution", 800, 2), ("aten::relu", 100, 2), ("aten::add", 100, 2)])


@silent("cpu-hotspot")
def one_cold_call():
    story = Story(gpu=None)
    story.op("aten::ones", 0, 100)
    story.op("aten::sin", 120, 1700)
    return story


@fires("cpu-hotspot")
def one_long_call():
    story = Story(gpu=None)
    story.op("aten::ones", 0, 100)
    story.op("aten::sort", 120, 1_700_000)
    return story


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


@silent("python-bound")
def a_few_frames_were_recorded():
    """Too few for all times of the host to be in doubt."""
    story = program([("aten::add", 5, 15)] * 40)
    story.frame("model.py(3): forward", 0, 700)
    return story


def small_training(us=5, pause=6, count=40, frames=0):
    """Steps of an optimizer on the processor: `count` operators of `us` each, `pause` us apart, perhaps with stacks."""
    story = Story(gpu=None)
    for at in story.steps(4, count * (us + pause) + 120):
        for k in range(count):
            story.op("aten::mul", at + 10 + k * (us + pause), us)
            for i in range(frames):
                story.frame("model.py(3): forward", at + 10 + k * (us + pause) + us + 0.5 + i * 0.2, 0.1)
        story.note("Optimizer.step#SGD.step", at + 20 + count * (us + pause), 90)
        for k in range(10):
            story.op("aten::add_", at + 25 + count * (us + pause) + 8 * k, 5)
    return story


@fires("small-steps")
def a_step_of_short_operators():
    return small_training()


@fires("small-steps", "profiler-overhead")
@silent("python-bound")
def a_step_of_short_operators_with_stacks():
    return small_training(frames=5)


@silent("small-steps")
def a_step_whose_pauses_are_the_recording_of_stacks():
    return small_training(us=11, pause=6, frames=20)


@silent("small-steps")
def a_step_of_long_operators():
    return small_training(us=60)


@silent("small-steps")
def a_step_of_many_operators():
    return small_training(count=400)


def pieces(pause, count=12, first=0, us=100, frames=False, gpu=None):
    """No steps: pieces of speech, five operators of `us` each, then Python for `pause` us; `first`: before all that."""
    story = Story(gpu=gpu)
    story.op("aten::empty", 0, 10)
    for i in range(count):
        at = 10 + first + i * (5 * us + pause)
        for k, name in enumerate(["normal_", "stft", "abs", "mean", "to"]):
            story.op(f"aten::{name}", at + us * k, us - 1)
        if frames:
            story.frame("words.py(3): spell", at + 5 * us, pause)
    return story


@fires("python-bound")
@silent("between-steps-gap")
def python_after_each_piece_without_steps():
    return pieces(pause=5000)


@fires("python-bound")
def the_same_after_a_long_set_up():
    return pieces(pause=5000, first=1_000_000)


@fires("python-bound")
def the_same_with_stacks():
    return pieces(pause=5000, frames=True)


@fires("python-bound")
def a_device_idle_meanwhile():
    story = pieces(pause=5000, gpu="NVIDIA A100-SXM4-80GB")
    for i in range(12):
        story.kernel("stft", 110 + 5500 * i, 100, launch_at=105 + 5500 * i)
    return story


@silent("python-bound")
def a_device_at_work_meanwhile():
    story = pieces(pause=5000, gpu="NVIDIA A100-SXM4-80GB")
    for i in range(12):
        story.kernel("stft", 110 + 5500 * i, 5300, launch_at=105 + 5500 * i)
    return story


@silent("python-bound")
def a_long_set_up_alone():
    return pieces(pause=5, first=1_000_000)


@silent("python-bound")
def one_break_much_longer_than_the_others():
    """Between the same operators, but it is no part of the loop, which leaves its operators for 29% of the time."""
    story = pieces(pause=600, us=300)
    for event in story.events[31:]:
        event["ts"] += 1_000_000
    return story


@silent("python-bound")
def breaks_that_come_twice():
    story = pieces(pause=5)
    for event in story.events[21:]:
        event["ts"] += 50_000
    for event in story.events[41:]:
        event["ts"] += 50_000
    return story


@fires("between-steps-gap")
@silent("python-bound")
def the_same_pieces_with_steps():
    story = pieces(pause=5000)
    for i in range(12):
        story.step(i, 10 + 5500 * i, 5400)
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


def crowded(threads, loader=""):
    """The same where the thread waited for a processor in half of the recording."""
    story = multiplications(8000)
    noted = {"wall_us": 160_000.0, "waited_us": 80_000.0, "load": 9.0, "cores": 2, "threads": threads}
    story.top["torchwhy_processor_time"] = noted
    if loader:
        story.note(f"enumerate(DataLoader)#{loader}.__next__", 159_900, 90)
    return story


@silent("starved-threads")
def other_programs_have_the_processors():
    return crowded(threads=2)


@fires("starved-threads")
def threads_of_the_program_have_the_processors():
    return crowded(threads=8)


@fires("starved-threads")
def workers_of_the_program_may_have_the_processors():
    return crowded(threads=2, loader="_MultiProcessingDataLoaderIter")


@silent("starved-threads")
def other_programs_beside_a_loader_without_workers():
    return crowded(threads=2, loader="_SingleProcessDataLoaderIter")


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
