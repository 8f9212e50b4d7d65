"""Steps are counted by what an optimizer is in the program, not by the object."""

import pytest
import torch

from torchwhy.capture.launch.optimizers import Optimizers


def as_it_is(act):
    return act


@pytest.fixture
def numbers():
    seen = []
    watch = Optimizers(lambda number, name: seen.append(number), as_it_is)
    yield seen
    watch.remove()


def made(kind=torch.optim.SGD):
    return kind([torch.ones(1, requires_grad=True)], lr=0.1)


def test_an_optimizer_that_is_made_in_each_step_keeps_its_number(numbers):
    for _ in range(4):
        made().step()
    assert numbers == [0] * 4


def test_two_optimizers_have_two_numbers(numbers):
    first, second = made(), made()
    for _ in range(2):
        first.step()
        second.step()
    assert numbers == [0, 1, 0, 1]


def test_two_that_are_made_in_each_step_keep_theirs(numbers):
    for _ in range(3):
        first, second = made(), made()
        first.step()
        second.step()
    assert numbers == [0, 1] * 3


def test_another_class_is_another_optimizer(numbers):
    made().step()
    made(torch.optim.Adam).step()
    assert numbers == [0, 1]


def test_optimizers_that_were_made_before_the_watch_are_told_apart():
    seen, first, second = [], made(), made()
    watch = Optimizers(lambda number, name: seen.append((number, name)), as_it_is)
    for _ in range(2):
        first.step()
        second.step()
    watch.remove()
    assert seen == [(0, "SGD"), (1, "SGD")] * 2


def test_nothing_is_left_behind():
    before, seen = torch.optim.Optimizer.__init__, []
    watch = Optimizers(lambda number, name: seen.append(number), as_it_is)
    assert torch.optim.Optimizer.__init__ is not before
    watch.remove()
    made().step()
    assert torch.optim.Optimizer.__init__ is before
    assert not seen
