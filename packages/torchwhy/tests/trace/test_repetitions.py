"""Repeated operators that a watch noted become lines that repeat, and their part of the recorded calls."""

import pytest

from tests.rules.case_computed_again import CHANGES, FORWARD, LOOP, MODULE, PRODUCT, SUM, watched
from torchwhy.trace.derived.repeats import repetitions

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
