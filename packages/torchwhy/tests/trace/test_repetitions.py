"""Repeated operators that a watch noted become lines that repeat, and their part of the recorded calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rules.case_contents import CHANGES, FORWARD, LOOP, MODULE, PRODUCT, SUM, watched
from tests.traces import Story, samples
from torchwhy.trace.derived.repeats import repeated_calls, repetitions
from torchwhy.trace.derived.steady_state import steady_window

MM = ("aten::mm", "[[64, 64], [64, 64]]")


def repetitions_of(*sites):
    return watched(*sites).trace().derived(repetitions)


def test_the_outermost_line_is_named_of_which_everything_is_repeated():
    inner = [["torch/functional.py(9): stft", "net.py(9): features", LOOP], ["net.py(8): features", LOOP]]
    other = ("aten::sum", SUM, ["train.py(31): main"], 12, 0, 0)
    found = repetitions_of(("aten::mm", PRODUCT, inner[0], 9, 9, 9), ("aten::add", SUM, inner[1], 9, 9, 9), other)
    assert [(one.stack, one.function) for one in found] == [((LOOP,), "")]
    mixed = ("aten::abs", SUM, inner[1], 9, 0, 0)
    found = repetitions_of(("aten::mm", PRODUCT, inner[0], 9, 9, 9), mixed, CHANGES)
    assert [(one.stack[0], one.called) for one in found] == [("net.py(9): features", "torch/functional.py(9): stft")]


def test_a_function_that_only_repeats_is_named():
    lines = [[f"net.py({line}): bank", "net.py(20): forward", LOOP] for line in (8, 9)]
    sites = [("aten::mm", PRODUCT, stack, 9, 9, 9) for stack in lines]
    found = repetitions_of(*sites, ("aten::sum", SUM, ["net.py(20): forward", LOOP], 12, 0, 0), CHANGES)
    assert {(one.stack[0], one.function) for one in found} == {
        ("net.py(8): bank", "bank"),
        ("net.py(9): bank", "bank"),
    }


def test_a_part_is_what_is_repeated_of_all_calls_with_these_shapes():
    (found,) = repetitions_of(
        ("aten::mm", PRODUCT, ["net.py(7): forward", MODULE, LOOP], 12, 0, 0),
        ("aten::mm", PRODUCT, FORWARD, 12, 9, 9, ["net.py(7): forward", MODULE, LOOP]),
        ("aten::mm", PRODUCT, [], 12, 0, 0),
        CHANGES,
    )
    assert found.parts == {MM: pytest.approx(9 / 12 / 3)}
    assert found.earlier == "net.py(7): forward"


@pytest.mark.parametrize(
    "damage", [{"frames": 3}, {"stacks": [[9]]}, {"lines": []}, {"sites": [{}]}, {"sites": None}], ids=str
)
def test_a_damaged_record_says_nothing(damage):
    story = watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), CHANGES)
    assert len(story.trace().derived(repetitions)) == 1
    story.top["torchwhy_contents"] |= damage
    assert story.trace().derived(repetitions) == ()


@pytest.mark.parametrize("numbers", [{"judged": 0}, {"again": -3}, {"shapes": [[str(PRODUCT), 0, 10]]}], ids=str)
def test_impossible_numbers_are_no_time(numbers):
    story = watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), CHANGES)
    story.top["torchwhy_contents"]["sites"][0] |= numbers
    assert all(set(one.parts.values()) == {0} for one in story.trace().derived(repetitions))


def repeated_us(story, *sites):
    """Microseconds a step that are repeated, where all calls of some sites are."""
    parts = {(name, str(shapes)): 1.0 for name, shapes, *_ in sites}
    return repeated_calls(story.trace(), parts).time_us / 5


def test_the_way_from_one_repeated_operator_to_the_next_is_repeated_too():
    first, second = ("aten::mm", PRODUCT, FORWARD, 10, 10, 10), ("aten::relu", SUM, FORWARD, 10, 10, 10)
    assert repeated_us(watched(first, second, CHANGES), first, second) == 2 * 300 + 10
    assert repeated_us(watched(first, CHANGES, second), first, second) == 2 * 300


def test_the_way_back_to_the_first_operator_is_not():
    first, second = ("aten::mm", PRODUCT, FORWARD, 10, 10, 10), ("aten::relu", SUM, FORWARD, 10, 10, 10)
    story = watched(second, first, CHANGES)
    story.top["torchwhy_contents"]["sites"].reverse()
    assert repeated_us(story, first, second) == 2 * 300


def test_an_operator_that_calls_a_repeated_one_is_repeated_unless_it_calls_others():
    site = ("aten::mm", PRODUCT, FORWARD, 10, 10, 10)
    for other, expected in (("aten::t", 306), ("aten::sum", 300)):
        story = watched(site, CHANGES)
        for at in range(0, 5000, 1000):
            story.op("aten::linear", at + 5, 306)
            story.op(other, at + 6, 2)
        assert repeated_us(story, site) == expected


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 90), st.integers(0, 400)), min_size=1, max_size=12))
def test_repeated_time_is_at_least_the_operators_and_at_most_the_window(calls):
    story = Story(gpu=None)
    at = 0
    for name, us, gap in calls:
        story.op(f"aten::{name}", at, us, **{"Input Dims": [[4]]})
        at += us + gap
    noted = {"frames": [], "lines": [], "stacks": []}
    site = {"stack": -1, "judged": 0, "again": 0, "time_us": 0, "values": 0, "in_a_row": 0, "earlier": -1}
    shapes = {"shapes": [["[[4]]", 1, 1]]}
    story.top["torchwhy_contents"] = noted | {"sites": [site | shapes | {"operator": f"aten::{one}"} for one in "abc"]}
    trace = story.trace()
    found = repeated_calls(trace, {("aten::a", "[[4]]"): 1.0, ("aten::b", "[[4]]"): 0.5})
    least = sum(us * {"a": 1.0, "b": 0.5, "c": 0.0}[name] for name, us, _ in calls)
    assert least - 1e-6 <= found.time_us <= found.when.total / 1000 + 1e-6
    others = sum(us for name, us, _ in calls if name == "c")
    assert found.when.total / 1000 <= trace.window.us - others + 1e-6


@pytest.mark.parametrize(("shown", "share"), [(6, 0.6), (3, 0.3), (0, 0.1)])
def test_all_of_the_time_counts_in_which_samples_show_what_only_repeats(shown, share):
    """The operators take a tenth of it; of samples, `shown` of ten show the module that calls them."""
    story = watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), CHANGES, us=100)
    launcher = "torchwhy/capture/launch/program.py(9): run"
    inside = ["torch/nn/functional.py(3): f", *FORWARD[:2], "torchwhy/capture/launch/calls.py(4): run", LOOP, launcher]
    outside = ["torch/nn/functional.py(3): f", LOOP, launcher]
    trace = samples(story, [inside if k % 10 < shown else outside for k in range(500)], every=10).trace()
    (found,) = trace.derived(repetitions)
    repeated = repeated_calls(trace, found.parts, found.inside)
    window = trace.derived(steady_window).us
    assert repeated.time_us == pytest.approx(share * window, rel=0.05)
    assert repeated.time_us <= repeated.when.total / 1000 + 1e-6
