"""Steps that differ, and time in which nothing is computed."""

from tests.rules.cases import fires, silent
from tests.traces import Story, samples


def steps(lengths, gpu=None, first=0):
    """Steps full of work, of these lengths in microseconds."""
    story, at = Story(gpu=gpu), 0
    for i, us in enumerate(lengths):
        story.step(first + i, at, us)
        for k in range(10):
            story.op("aten::mm", at + us * k / 10, us / 10)
            if gpu:
                story.kernel("sgemm", at + us * k / 10 + 5, us / 10, launch_at=at + us * k / 10 + 1)
        at += us
    return story


@fires("first-step-cold")
@silent("step-tail")
def the_first_step_takes_twice_as_long():
    return steps([2000, 1000, 1010, 990, 1000])


@fires("first-step-cold")
def on_a_gpu():
    return steps([2000, 1000, 1010, 990, 1000], "NVIDIA H100 80GB HBM3")


def server_steps(lengths, names):
    """Rounds of an inference server with these names."""
    story = steps(lengths)
    marks = iter(names)
    for event in story.events:
        if event["name"].startswith("ProfilerStep#"):
            event["name"] = next(marks)
    return story


@silent("first-step-cold", "step-tail")
def prefill_takes_longer_than_decode():
    """Steps of different phases do different work."""
    decode = [f"step[DECODE bs={8 + i}]" for i in range(20)]
    return server_steps([3000] + [1000] * 9 + [3000] + [1000] * 9, ["step[EXTEND bs=1]", *decode[:9]] * 2)


@fires("first-step-cold")
def the_first_decode_is_cold():
    names = ["step[EXTEND bs=1]", *(f"step[DECODE bs={i}]" for i in range(8))]
    return server_steps([3000, 4000] + [1000] * 7, names)


@silent("first-step-cold", "step-tail", "between-steps-gap")
def even_steps():
    return steps([1100, 1000, 1010, 990, 1000, 1005])


@silent("first-step-cold")
def another_step_is_as_slow():
    return steps([1500, 1000, 1600, 990, 1000, 1005])


@silent("first-step-cold")
def the_last_step_is_empty():
    """step() was called once more after the loop."""
    story = steps([1000])
    story.step(1, 1000, 30)
    return story


@fires("first-step-cold")
def an_annotation_that_begins_late():
    story = Story(gpu=None)
    for i, delay in enumerate([228, 5, 4]):
        story.note("matmul_add", 500 * i, 300)
        story.op("aten::matmul", 500 * i + delay, 40)
    return story


@silent("first-step-cold")
def later_rounds_begin_with_another_operator():
    """What comes late comes late in every round."""
    story = Story(gpu=None)
    for i in range(3):
        story.note("graph", 500 * i, 300)
        if i:
            story.op("aten::as_strided", 500 * i + 4, 2)
        story.op("aten::matmul", 500 * i + 228, 40)
    return story


@silent("between-steps-gap")
def nothing_tells_what_precedes_the_first_operator_of_one_step():
    story = Story()
    story.step(7, 0, 2700)
    story.op("aten::mm", 600, 1000)
    story.kernel("sgemm", 1700, 1000, launch_at=1500)
    return story


@fires("step-tail")
def one_step_in_ten():
    story = steps([1000] * 5 + [3000] + [1000] * 5)
    story.note("gc", 5010, 1900)
    return story


@fires("step-tail")
def every_third_step():
    return steps([1000, 1000, 3000, 1000, 1000, 3000])


@fires("between-steps-gap")
def pauses_that_a_queue_hides_in_all_but_the_longest():
    """Every second step pauses. In the last one the device has no work meanwhile, and only that step is longer."""
    story, at = Story(), 0
    for i in range(6):
        pause = (12_000 if i == 5 else 6000) if i % 2 else 100
        first = 500 if i == 5 else 5900
        story.op("aten::mm", at, 90)
        story.kernel("sgemm", at + 20, first, launch_at=at + 5)
        story.op("aten::add", at + pause, 90)
        start = max(at + pause, at + first) + 20
        story.kernel("add", start, 2900, launch_at=at + pause + 5)
        story.call("cudaStreamSynchronize", at + pause + 90, start + 2900 - at - pause - 90)
        story.step(i, at, start + 2980 - at)
        at = start + 2980
    return story


@fires("between-steps-gap")
def logging_within_steps():
    story = Story()
    for at in story.steps(4, 3000):
        for k in range(10):
            story.op("aten::mm", at + 100 * k, 90)
            story.kernel("sgemm", at + 100 * k + 10, 95, launch_at=at + 100 * k + 5)
    return story


@fires("between-steps-gap")
def a_checkpoint_between_rounds():
    story = Story(gpu=None)
    for i in range(4):
        story.note("train_step", 3000 * i, 2000)
        for k in range(20):
            story.op("aten::mm", 3000 * i + 100 * k, 98)
    return story


@silent("between-steps-gap")
def the_thread_is_taken_off_its_processor():
    """Stretches as long as a checkpoint's, but at other places of each step."""
    story, at = Story(gpu=None), 0
    for i in range(3):
        begin = at
        for k in range(100):
            story.op("aten::mm" if k % 3 else "aten::add", at, 98)
            at += 2000 if k in (11 * i + 7, 17 * i + 40) else 100
        story.step(i, begin, at - begin)
    return story


def paused(often, waited, steps=12):
    """Steps on a CPU with a stretch of 3 ms at one place, in so many of ten; the thread waited for a processor."""
    story, at = Story(gpu=None), 0
    for i in range(steps):
        begin = at
        for _ in range(3):
            story.op("aten::mm", at, 500)
            at += 510
        at += 3000 if i * often % 10 < often else 20
        story.op("aten::add", at, 500)
        at += 510
        story.step(i, begin, at - begin)
    story.top["torchwhy_processor_time"] = {"wall_us": at, "waited_us": waited * at, "load": 4.0, "cores": 2}
    return story


@fires("between-steps-gap")
def the_only_step_stops():
    return paused(10, waited=0.05, steps=1)


@silent("between-steps-gap")
def each_step_stops_elsewhere():
    """Three long stretches, each between calls that come once."""
    story, at = Story(gpu=None), 0
    for i in range(3):
        begin = at
        for k in range(20):
            story.op(f"aten::op{i}_{k}", at, 500)
            at += 3000 if k == 5 + i else 510
        story.step(i, begin, at - begin)
    return story


@fires("between-steps-gap")
def every_third_step_stops():
    return paused(3, waited=0.05)


@silent("between-steps-gap")
def every_third_step_stops_on_a_busy_machine():
    return paused(3, waited=0.6)


@fires("between-steps-gap")
def every_step_stops_on_a_busy_machine():
    return paused(10, waited=0.6)


@fires("between-steps-gap")
def an_annotation_says_so():
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        for k in range(7):
            story.op("aten::mm", at + 100 * k, 98)
        story.note("logging", at + 700, 290)
        story.op("aten::clone", at + 720, 100)
    return story


@silent("between-steps-gap")
def python_works_while_the_device_does():
    story = Story()
    for at in story.steps(4, 3000):
        for k in range(10):
            story.op("aten::mm", at + 100 * k, 90)
            story.kernel("sgemm", at + 290 * k + 30, 290, launch_at=at + 100 * k + 5)
    return story


@fires("gc-pause")
def a_collection_in_the_loop():
    story = steps([5000] * 4)
    story.note("gc", 7000, 1500)
    return story


@fires("gc-pause")
def a_collection_as_the_profiler_records_it():
    story = steps([5000] * 4)
    story.frame("Python GC", 7000, 1500)
    return story


@fires("gc-pause")
def gc_collect_is_called():
    story = steps([5000] * 4)
    story.frame("<built-in method collect of module object at 0x7f>", 7000, 1500)
    return story


def without_steps(*collections):
    """A program that computes for 20 ms, then stands still for 80 ms, then computes again."""
    story = Story(gpu=None)
    for start in (0, 100_000):
        for k in range(10):
            story.op(f"aten::op{k}", start + 2000 * k, 1900)
    for at in collections:
        story.note("Python GC", at, 2000)
    return story


@silent("gc-pause")
def collections_while_the_program_is_set_up():
    """Imports make many objects."""
    return without_steps(*range(30_000, 90_000, 5000))


@fires("gc-pause")
def collections_between_operators_without_steps():
    return without_steps(50_000, 105_000, 111_000)


@silent("gc-pause")
def a_short_collection():
    story = steps([5000] * 4)
    story.note("gc", 7000, 300)
    return story


@silent("step-tail", "first-step-cold", "between-steps-gap")
def the_host_waits_for_the_device_to_catch_up():
    """The host takes 300 us per step and 4 ms in every fifth, in which it waits; the device never rests."""
    story, at, free = Story(), 0, 10
    for i in range(21):
        waits = i % 5 == 0
        until = max(free - 20, at + 300) if waits else at + 300
        story.step(i, at, until - at)
        for k in range(10):
            story.op("aten::mm", at + 20 * k, 18)
            story.kernel("sgemm", max(free, at + 20 * k + 6), 100, launch_at=at + 20 * k + 2)
            free = max(free, at + 20 * k + 6) + 100
        if waits:
            story.op("aten::item", at + 205, until - at - 210)
        at = until
    return story


def held_up(lengths, work_us=300):
    """Steps on a CPU that compute for the same time and then do nothing that was recorded."""
    story, at = Story(gpu=None), 0
    for number, us in enumerate(lengths):
        story.step(number, at, us)
        story.op("aten::mm", at + 5, work_us)
        at += us
    return story


@fires("step-tail")
@silent("between-steps-gap", "python-bound")
def the_system_took_the_processor_away_once():
    return held_up((361, 3000, 361, 361))


@fires("between-steps-gap")
@silent("step-tail")
def every_step_stops():
    return held_up((3000, 3000, 3000, 3000))


def stopped_at(line):
    """Steps of 1 ms that stop for 500 us, where samples show a line of the program."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.op("aten::mm", at + 10, 400)
        story.op("aten::add", at + 950, 40)
    return samples(story, [[f"train.py(30): step |{line}"] for _ in range(80)], every=50)


@fires("between-steps-gap")
def another_thread_holds_a_lock():
    return stopped_at("with self.lock:")


@fires("between-steps-gap")
def a_line_that_opens_a_block_without_a_lock():
    return stopped_at("with open(self.block_file) as file:")


def between_operators(frame):
    """Steps of which 600 of 1000 us pass in one function."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        story.op("aten::mm", at + 10, 350)
        story.frame("train.py(3): main", at + 5, 990)
        story.frame(frame, at + 370, 600)
    return story


@fires("between-steps-gap")
def a_function_between_operators():
    return between_operators("train.py(9): log")


@silent("between-steps-gap", "python-bound")
def the_profiler_ends_a_step():
    return between_operators("torch/profiler/profiler.py(1150): step")


def timed(*times_us):
    """Recorded steps of a millisecond, and others that were only timed."""
    story = Story(gpu=None, torchwhy_unrecorded_steps=[[number, us] for number, us in enumerate(times_us)])
    for at in story.steps(4, 1000):
        story.op("aten::mm", at + 10, 900)
    return story


@fires("growing-steps")
def each_step_writes_all_that_was_logged():
    return timed(*(1000 + 5 * number for number in range(300)))


@silent("growing-steps")
def steps_that_differ_without_a_trend():
    return timed(*(1000 + 1500 * (number * 7919 % 13) / 13 for number in range(300)))


@silent("growing-steps")
def another_program_began_half_way():
    return timed(*(1000 if number < 150 else 1700 for number in range(300)))


@silent("growing-steps")
def steps_that_become_a_little_longer():
    return timed(*(1000 + number for number in range(300)))
