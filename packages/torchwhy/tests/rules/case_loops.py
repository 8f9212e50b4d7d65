"""Python loops."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def calls(number, us=5, gpu=None, name="aten::add", steps=3):
    story = Story(gpu=gpu)
    for at in story.steps(steps, 2000):
        for k in range(number):
            story.op(name, at + 9 * k + 1, us)
            if gpu:
                story.kernel("elementwise", at + 9 * k + 6, 2, launch_at=at + 9 * k + 2)
    return story


@fires("dispatch-flood")
def two_hundred_additions_on_a_cpu():
    return calls(200)


@fires("dispatch-flood")
def two_hundred_additions_on_a_gpu():
    return calls(200, gpu="NVIDIA A100-SXM4-80GB")


@silent("dispatch-flood")
def forty_additions():
    return calls(40)


@silent("dispatch-flood")
def calls_that_were_held_up():
    """One call in each step waits for half of it; the others don't keep the device waiting."""
    story = Story()
    for at in story.steps(3, 2000):
        story.kernel("sgemm", at + 1, 1080, launch_at=at)
        for k in range(110):
            story.op("aten::add", at + 9 * k + 10, 5)
        story.op("aten::add", at + 1000, 900)
        story.kernel("sgemm", at + 1910, 88, launch_at=at + 1900)
    return story


@silent("dispatch-flood")
def called_often_by_another_operator():
    story = calls(0)
    for i in range(3):
        story.op("aten::lstm", 2000 * i + 5, 1900)
        for k in range(200):
            story.op("aten::add", 2000 * i + 9 * k + 10, 5)
    return story


@silent("dispatch-flood")
def an_optimizer_does_it():
    story = calls(200)
    for i in range(3):
        story.note("Optimizer.step#SGD.step", 2000 * i, 1990)
    return story


def rows(count, inner="aten::mul", inner_us=6, gap_us=0):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for k in range(count):
            start = at + (10 + inner_us + gap_us) * k
            story.op("aten::select", start + 1, 3, **{"Input Dims": "[[64, 512], [], []]"})
            story.op(inner, start + 5, inner_us)
    return story


@fires("tensor-for-loop")
def a_loop_over_rows():
    return rows(32)


@fires("tensor-for-loop")
@silent("dispatch-flood")
def a_loop_is_told_once():
    """Each round slices and calls something: not a flood of calls besides."""
    return rows(60, inner_us=4)


@silent("tensor-for-loop")
def three_rows():
    return rows(3)


@silent("tensor-for-loop")
def a_loop_over_layers():
    """Slices of stacked weights, each used for a product worth its call."""
    return rows(12, "aten::mm", 900)


@silent("tensor-for-loop")
def the_dataset_picks_its_samples():
    story = rows(32)
    for i in range(3):
        story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * i, 600)
    return story
