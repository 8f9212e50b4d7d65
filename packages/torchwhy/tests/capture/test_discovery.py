"""Steps are found in the order of events a loop makes: D a batch, F a forward pass, O an optimizer step.

(name ...) is a label of the program around events, [...] an operator.
"""

import itertools
import re

import pytest

from torchwhy.capture.launch.discovery import PATIENCE, PATIENCE_S, Source, StepFinder
from torchwhy.capture.launch.labels import Label

OPTIMIZER, LOADER, MODEL, CRITERION = 1, 2, 3, 4


def find(events, wanted=None, has_optimizer=False, round_s=PATIENCE_S, may_switch=lambda: True):
    """Play events, `round_s` apart, and return what the finder said: the label where it began, "|" for later steps."""
    said, labels, operators, ticks = [], [], [], itertools.count()
    finder = StepFinder(
        wanted,
        lambda label, before: said.append(f"{label} after {before}"),
        lambda: said.append("|"),
        may_switch,
        lambda: has_optimizer,
        open_labels=lambda: tuple(labels),
        in_operator=lambda: bool(operators),
        clock=lambda: round_s * next(ticks),
    )

    def optimize(key, name):
        finder.label(f"Optimizer.step#{name}.step", True)
        finder.optimizer(key, name)

    def enter(name):
        finder.label(name, False)
        labels.append(Label(name, next(numbers)))

    numbers = itertools.count()
    act = {
        "D": lambda: finder.data(LOADER),
        "F": lambda: finder.forward(MODEL, "forward of Net"),
        "C": lambda: finder.forward(CRITERION, "forward of Loss"),
        "O": lambda: optimize(OPTIMIZER, "Adam"),
        "P": lambda: optimize(OPTIMIZER + 100, "Other"),
        ")": labels.pop,
        "[": lambda: operators.append(1),
        "]": operators.pop,
        " ": lambda: said.append(" "),
    }
    for event in re.findall(r"\([a-z]+|.", events):
        act.get(event, lambda event=event: enter(event[1:]))()
    return said


def test_training_steps_with_the_optimizer_and_begins_with_the_next_batch():
    assert find("DFO" * 4) == ["Adam.step after 1", "|", "|"]


def test_training_without_a_loader_begins_with_the_next_forward():
    assert find("FCO" * 4) == ["Adam.step after 1", "|", "|"]


def test_an_optimizer_alone_is_enough():
    assert find("OOOO") == ["Adam.step after 1", "|", "|"]


def test_of_two_optimizers_the_first_counts():
    assert find("DFOP" * 4) == ["Adam.step after 1", "|", "|"]


def test_accumulated_gradients_make_one_step():
    assert find("DFDFDFDFO" * 3, has_optimizer=True) == ["Adam.step after 1", "|"]


def test_an_optimizer_that_comes_late_takes_over_while_nothing_is_recorded():
    events = "DFDFDFO" * 2 + "D"
    assert find(events, has_optimizer=False) == ["DataLoader after 1", "|", "Adam.step after 1", "|"]
    assert "Adam.step after 1" not in find(events, has_optimizer=False, round_s=PATIENCE_S, may_switch=lambda: False)


def test_inference_steps_with_the_loader():
    assert find("DF" * 4) == ["DataLoader after 1", "|", "|"]


def test_validation_before_training_makes_no_steps():
    assert find("DF" * 8 + "DFO" * 3, has_optimizer=True) == ["Adam.step after 1", "|"]


def test_a_loop_over_the_examples_of_a_batch_makes_no_steps():
    loop = "F" * 4 * PATIENCE + "O"
    assert find(loop * 3, has_optimizer=True, round_s=1e-4) == ["Adam.step after 1", "|"]
    assert find(loop * 3, has_optimizer=True, round_s=1.0)[0].startswith("forward of Net")


def test_generation_steps_with_the_batch_and_not_with_the_token():
    assert find("DFFFF" * 3) == ["DataLoader after 1", "|"]


def test_an_outermost_module_is_the_last_resort():
    assert find("FCFCFC") == ["forward of Net after 1", "|"]


def test_one_forward_is_no_step():
    assert find("F") == []


def test_patience_ends():
    said = find("F" * (PATIENCE + 2), has_optimizer=True)
    assert said == [f"forward of Net after {PATIENCE - 1}", "|", "|"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Source.FORWARD, ["forward of Net after 0"]),
        (Source.DATA, ["DataLoader after 0", "|"]),
        (Source.OPTIMIZER, ["Adam.step after 1"]),
    ],
)
def test_a_source_asked_for_is_the_only_one(wanted, said):
    assert find("DFO" * 2 + "D" * (wanted is Source.OPTIMIZER), wanted)[: len(said)] == said
    assert len({word for word in find("DFO" * 9, wanted) if word != "|"}) == 1


def test_a_step_begins_with_the_label_that_holds_its_forward():
    said = find("(prepare) (forward F )(post)" * 3)
    assert "".join(said) == "    forward of Net after 1   |  "


def test_a_label_around_the_loop_holds_no_step_back():
    assert find("(epoch" + "F" * 5 + ")") == ["forward of Net after 1", "|", "|", "|"]
    assert find("(epochFFF)" * 2) == ["forward of Net after 1", "|", "|", "|", "|"]
    assert find("(training" + "DFO" * 4 + ")", has_optimizer=True) == ["Adam.step after 2", "|"]


def test_labelled_training_steps_begin_with_the_first_label_after_the_optimizer():
    assert find("(step(forwardF)(optimizeO))" * 4) == ["Adam.step after 1", "|", "|"]
    assert find("(forwardF)(optimizeO)" * 4) == ["Adam.step after 1", "|", "|"]


def test_no_step_begins_within_a_label_that_two_optimizers_share():
    said = find("(step(dFOx)(gFPx)) ".replace("x", "") * 4)
    assert "".join(said) == " Adam.step after 1 | | "


def test_no_step_begins_inside_an_operator():
    assert find("[F]" * PATIENCE * 2) == []
    assert find("[F]O" * 4, has_optimizer=True) == ["Adam.step after 1", "|", "|"]
    assert find("F[FF]" * 3) == ["forward of Net after 3", "|"]
