"""The verdict on step times."""

import numpy as np
import pytest

from tests.difference.pairs import loop, traces
from tests.traces import Story
from torchwhy import diff

STEADY = [1000, 1010, 990, 1005, 995]


def verdict(a, b):
    return diff(*traces(a, b)).verdict


def test_a_fifth_faster_is_found_and_said_with_numbers():
    found = verdict(loop([1250, 1260, 1240, 1255, 1245]), loop(STEADY))
    assert found.kind == "faster"
    assert found.sentence == "B is 1.25x faster (1.25 ms -> 1.00 ms per step, beyond the noise of ±1.3%)."


def test_slower_is_the_mirror_of_faster():
    slow = [1250, 1260, 1240, 1255, 1245]
    assert verdict(loop(STEADY), loop(slow)).sentence.startswith("B is 1.25x slower (1.00 ms -> 1.25 ms")


def test_random_steps_of_one_program_are_no_difference():
    random = np.random.default_rng(7)
    kinds = []
    for _ in range(40):
        a, b = 1000 * np.exp(0.1 * random.standard_normal((2, 6)))
        kinds.append(verdict(loop(a.round(3), kernels=0), loop(b.round(3), kernels=0)).kind)
    assert kinds.count("no difference") >= 38


def test_two_steps_cannot_be_judged():
    found = diff(*traces(loop([1000, 1000]), loop([500] * 5)))
    assert found.verdict.kind == "noise unknown"
    assert "with 2 steps on a side, noise can't be judged" in found.verdict.sentence
    assert found.slower_than(0) is None


def test_a_cold_first_step_is_left_out():
    found = diff(*traces(loop([5000, *STEADY]), loop(STEADY)))
    assert found.verdict.kind == "no difference"
    assert found.a.rounds.cold_us == 5000
    assert "A's first step is cold and left out." in found.conditions


def test_a_first_step_that_does_more_is_not_cold():
    """Here the others do next to nothing: leaving out the first would leave out the program."""
    story = loop([1000])
    for i in range(3):
        story.step(6 + i, 1000 + 10 * i, 10)
    assert diff(*traces(story, story)).a.rounds.cold_us is None


def test_without_steps_the_whole_recordings_are_compared():
    a, b = Story(), Story()
    a.op("aten::mm", at=0, us=100)
    b.op("aten::mm", at=0, us=50)
    found = diff(*traces(a, b))
    assert found.verdict.kind == "noise unknown"
    assert "100 us -> 50.0 us for the whole recording" in found.verdict.sentence


def test_steps_on_one_side_only_cannot_be_compared():
    b = Story()
    b.op("aten::mm", at=0, us=50)
    found = verdict(loop(STEADY), b)
    assert (found.kind, found.sentence) == ("not comparable", "A and B can't be compared, because only A has steps.")


def test_an_empty_trace_cannot_be_compared():
    text = "A and B can't be compared, because {} no events that take any time."
    assert verdict(Story(), loop(STEADY)).sentence == text.format("A has")
    assert verdict(Story(), Story()).sentence == text.format("A and B have")


def test_where_the_device_sets_the_pace_its_time_counts():
    """The host runs ahead: its steps take 100 us, the device needs 300 us (A) and 200 us (B) for each."""

    def story(us):
        found = Story()
        for i in range(6):
            found.step(i, 100 * i, 100)
            found.op("aten::mm", 100 * i + 10, 50)
            found.kernel("gemm", 20 + us * i, us, launch_at=100 * i + 15)
        return found

    found = diff(*traces(story(300), story(200)))
    assert found.steps.clock == "device"
    assert found.steps.median_us == (300, 200)
    assert found.verdict.kind == "faster"


@pytest.mark.parametrize(("allowed", "expected"), [(0.1, True), (0.24, False), (0.5, False)])
def test_slower_than_allowed_means_beyond_the_noise(allowed, expected):
    found = diff(*traces(loop(STEADY), loop([1250, 1260, 1240, 1255, 1245])))
    assert found.slower_than(allowed) is expected


def test_faster_is_never_too_slow():
    assert diff(*traces(loop(STEADY), loop([500, 505, 495, 500]))).slower_than(0) is False


def annotated(name, us):
    story = Story(gpu=None)
    for i in range(5):
        story.note(name, 1000 * i, us + i)
        story.op("aten::mm", 1000 * i, us / 2)
    return story


def test_steps_inferred_from_the_same_annotation_compare():
    assert verdict(annotated("forward", 500), annotated("forward", 250)).kind == "faster"


def test_steps_inferred_from_different_annotations_do_not():
    found = verdict(annotated("forward", 500), annotated("train", 900))
    assert found.sentence == "A and B can't be compared, because a step of A is a forward, a step of B a train."


def test_rounds_of_the_loop_compare_with_recorded_steps():
    """B has no ProfilerStep, but an optimizer step in every round."""
    a, b = Story(gpu=None), Story(gpu=None)
    for story, step in ((a, True), (b, False)):
        for i in range(6):
            if step:
                story.step(i, 1000 * i, 1000)
            story.op("aten::mm", 1000 * i + 10, 500)
            story.note("Optimizer.step#SGD.step", 1000 * i + 800, 100)
    found = diff(*traces(a, b))
    assert found.verdict.kind == "no difference"
    assert any("needn't mean the same" in text for text in found.conditions)


def test_steps_inferred_on_one_side_only_leave_the_whole_recordings():
    once = Story(gpu=None)
    once.op("aten::mm", at=0, us=5000)
    found = diff(*traces(once, annotated("forward", 500)))
    assert found.verdict.kind == "noise unknown"
    assert "for the whole recording" in found.verdict.sentence


def busy(us, kernel_us):
    """Steps of a host that sets the pace, and of a device that works for a part of each."""
    story = Story()
    for i, step in enumerate((us, us + 8, us - 8, us + 4, us - 4)):
        story.step(i, 3000 * i, step)
        story.op("aten::mm", 3000 * i + 10, us / 2)
        story.kernel("gemm", 3000 * i + 50, kernel_us + i % 2, launch_at=3000 * i + 15)
    return story


def test_where_steps_take_as_long_the_headline_is_the_devices_time():
    found = verdict(busy(1000, 600), busy(1000, 300))
    assert found.kind == "no difference"
    assert found.device == (
        "But the device is busy for less time (600 us -> 300 us of each step, -50%), which the host hides."
    )


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((1000, 300), (1001, 300), "The device is busy for as long as before (300 us -> 300 us)."),
        ((1000, 300), (1500, 300), "The device is busy for as long as before (300 us -> 300 us): the change is on"),
        ((1000, 300), (1500, 700), "The device's time changed as the steps' did (300 us -> 700 us)."),
        ((1000, 300), (1500, 400), "The device is busy for 300 us -> 400 us of it."),
    ],
)
def test_the_headline_says_whose_time_changed(a, b, text):
    assert verdict(busy(*a), busy(*b)).device.startswith(text)


def varying(us, *device_us):
    """Steps of one duration, each with a kernel of another."""
    story = Story()
    for i, each in enumerate(device_us):
        story.step(i, 1000 * i, us)
        story.kernel("gemm", 1000 * i + 10, each, launch_at=1000 * i)
    return story


def test_what_is_not_proven_different_is_not_called_equal():
    """The device's mean time nearly doubles, and varies as much."""
    found = verdict(varying(900, 10, 120, 30, 100), varying(900, 10, 400, 20, 50))
    assert found.kind == "no difference"
    assert found.device == (
        "The device is busy for a time that varies too much from step to step to compare (65.0 us -> 120 us)."
    )


def test_a_host_alike_does_not_hide_a_device_that_is_not():
    """One step each: the host launches in the same time what the device works on 50 times as long."""
    found = verdict(varying(900, 10), varying(900, 500))
    assert found.kind == "noise unknown"
    assert found.device == "But its device is busy for 50 times as long as A's (10.0 us -> 500 us)."


def test_a_single_step_lasts_until_its_device_work_is_done():
    found = diff(*traces(varying(900, 10), varying(900, 45_000)))
    assert found.steps.clock == "device"
    assert found.verdict.sentence.startswith("B takes 50 times A's time")


def test_a_difference_beyond_the_noise_may_be_too_small_to_count():
    found = verdict(loop([1000, 1001, 999, 1000, 1001, 999]), loop([1008, 1009, 1007, 1008, 1009, 1007]))
    assert found.kind == "no difference"
    assert found.sentence == ("No difference of more than 1% (1.00 ms -> 1.01 ms per step: +0.8%, noise ±0.1%).")


def test_a_total_within_the_margin_is_not_within_the_noise():
    a, b = busy(1000, 600), busy(1000, 604)
    (total,) = (total for total in diff(*traces(a, b)).totals if total.name == "device busy")
    assert (total.judgement, total.changed) == ("margin", False)
    line = next(line for line in str(diff(*traces(a, b))).splitlines() if "device busy" in line)
    assert line.endswith("+0.7%")
