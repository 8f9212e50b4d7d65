"""Statements become functions."""

import pytest
import torch

from torchwhy.errors import ArgumentError
from torchwhy.timing.statement import function_from, run_setup


def test_the_last_expression_is_the_result():
    names = run_setup("x = torch.arange(3)")
    assert torch.equal(function_from("y = x + 1; y * 2", names)(), torch.tensor([2, 4, 6]))


def test_names_of_the_setup_can_be_assigned_to_and_others_stay_local():
    names = run_setup("x = 0")
    step = function_from("x += 1\nnew = x", names)
    step()
    step()
    assert names["x"] == 2
    assert "new" not in names


def test_loops_and_comprehensions_work():
    assert function_from("sum(i for i in range(4))", run_setup("pass"))() == 6
    assert function_from("for i in range(3):\n    total += i", names := run_setup("total = 0"))() is None
    assert names["total"] == 3


@pytest.mark.parametrize("text", ["x +", "", "  x", "def", "break", "await x"])
def test_what_is_not_python_is_refused_in_one_line(text):
    with pytest.raises(ArgumentError, match="the statement is"):
        function_from(text, {})
