"""The verdict names what limits the program, with its numbers; or says why it can't."""

import pytest

from profiler.report.programs import PROGRAMS, computing, on_cpu, overhead, report_on, training, waiting
from profiler.traces import Story
from torchfx.profiler.report.verdict import KINDS

EXPECTED = {
    "input-bound": ("input-bound", "for 48% of the 4 steps (1.92 ms of 4.00 ms)"),
    "overhead-bound": ("overhead-bound", "for 95% of the 3 steps (2.85 ms of 3.00 ms)"),
    "compute-bound": ("compute-bound", "it computes for 98% of the 3 steps"),
    "communication-bound": ("communication-bound", "for 58% of the 3 steps"),
    "copy-bound": ("copy-bound", "for 50% of the 3 steps"),
    "compile-bound": ("compile-bound", "for 91% of the recording (9.00 ms of 9.90 ms)"),
    "on-cpu": ("compute-bound", "operators run for 79% of the 3 steps"),
    "one-gap": ("unknown", "Can't tell, because one gap of 50.0 ms"),
    "nothing-from-the-gpu": ("unknown", "the host made 20 kernel launches, but nothing of what the GPU did"),
    "unrecorded-graphs": ("unknown", "3 CUDA graphs were replayed, and the kernels in them were not recorded"),
    "no-events": ("unknown", "the file holds no events with a duration"),
}


def verdict(story, *findings):
    return report_on(story, *findings)["verdict"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_kind_and_sentence(name):
    found = verdict(PROGRAMS[name]())
    kind, words = EXPECTED[name]
    assert found["kind"] == kind
    assert words in found["sentence"]
    assert found["sentence"].endswith(".")
    assert found["kind"] in KINDS


def test_a_device_mostly_at_work_is_the_limit_mostly():
    found = verdict(training(work=420, load=10, steps=3))
    assert found["kind"] == "overhead-bound"
    story = training(load=10, work=440)
    for i in range(4):
        story.kernel("gemm", 1000 * i + 250, 250, launch_at=1000 * i + 200)
    found = verdict(story)
    assert found["kind"] == "compute-bound"
    assert found["sentence"].startswith("Mostly the GPU is the limit: it computes for 69%")
    assert "waits for the program" in found["sentence"]


def test_a_rule_that_found_overhead_is_believed():
    story = training(load=10, work=440)
    for i in range(4):
        story.kernel("gemm", 1000 * i + 250, 250, launch_at=1000 * i + 200)
    assert verdict(story, lambda trace: waiting(trace, slug="overhead-bound"))["kind"] == "overhead-bound"


def test_recorded_stacks_make_waiting_doubtful():
    story = training(load=10, work=440)
    for i in range(400):
        story.frame("train.py(3): main", 10 * i, 5)
    found = verdict(story)
    assert found["kind"] == "unknown"
    assert "record once more without them" in found["sentence"]


def test_recorded_stacks_are_a_caveat_where_the_device_hardly_works():
    story = overhead()
    for i in range(300):
        story.frame("train.py(3): main", 10 * i, 5)
    found = verdict(story)
    assert found["kind"] == "overhead-bound"
    assert any("stacks were recorded" in caveat for caveat in found["caveats"])


def test_few_kernels_are_no_ground():
    story = Story()
    story.kernel("gemm", 1000, 10, launch_at=5)
    assert "holds only 1 kernel:" in verdict(story)["sentence"]


def test_one_long_kernel_is_ground_enough():
    story = Story()
    story.kernel("gemm", 10, 990, launch_at=0)
    assert verdict(story)["kind"] == "compute-bound"


def test_small_operators_on_a_cpu_are_overhead():
    found = verdict(on_cpu(operator_us=4))
    assert found["kind"] == "overhead-bound"
    assert "operators take 4.00 us on average" in found["sentence"]


def test_caveats():
    assert verdict(computing())["caveats"] == []
    story = Story()
    story.kernel("gemm", 10, 990, launch_at=0)
    assert verdict(story)["caveats"] == [
        "No steps are marked, so this is about the whole recording, its start and end included."
    ]
    found = verdict(computing(), lambda trace: waiting(trace, slug="clock-skew"))
    assert found["caveats"] == ["Clocks of host and device disagree in this file."]


def test_one_long_step_is_a_caveat():
    story = Story(gpu=None)
    for i, us in enumerate((5000, 1000, 1000)):
        story.step(i + 3, 10_000 * i, us)
        story.op("aten::mm", 10_000 * i, us)
    assert verdict(story)["caveats"] == [
        "One step takes 5.00 ms, the others 1.00 ms (median): these shares are mostly that step's; --steps 4-5 leaves "
        "it out."
    ]
