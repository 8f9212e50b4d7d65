"""Whether results of two runs agree, and what is said of it."""

import math

import pytest

from torchwhy.tuning.records import Results
from torchwhy.tuning.results import agreement_of

FIRST = Results([2.0, 1.0], {"module 0, step 1": [[1.0, 2.0]]}, [[0.5, 0.5]], "step 1: loss 1.234\ndone\n")


def other(**changes):
    return Results(**{name: changes.get(name, getattr(FIRST, name)) for name in FIRST.__struct_fields__})


def agreement(*changed, unchanged=(FIRST, FIRST)):
    return agreement_of(unchanged, changed)


def test_equal_results_are_identical():
    found = agreement(FIRST, FIRST)
    assert (found.largest, found.same) == (0, True)
    assert found.said == "identical (losses, outputs, parameters and printed text)"


@pytest.mark.parametrize(
    ("changes", "largest", "same", "of"),
    [
        ({"losses": [2.0, 1.0001]}, 1e-4 / math.sqrt(5), True, "losses"),
        ({"losses": [2.0, 1.1]}, 0.1 / math.sqrt(5), False, "losses"),
        ({"losses": [2.0]}, math.inf, False, "losses"),
        ({"losses": [2.0, math.nan]}, math.inf, False, "losses"),
        ({"outputs": {"module 0, step 1": [[1.0, 2.5]]}}, 0.5 / math.sqrt(5), False, "outputs"),
        ({"outputs": {"module 0, step 1": []}}, math.inf, False, "outputs"),
        ({"outputs": {}}, 0, True, "losses"),
        ({"parameters": [[0.5, 0.6]]}, 0.1 / math.sqrt(0.5), False, "parameters"),
        ({"parameters": []}, math.inf, False, "parameters"),
        ({"printed": "step 1: loss 1.235\ndone\n"}, 0, True, "losses"),
        ({"printed": "step 1: loss 1.334\ndone\n"}, (0.1 - 1.001e-3) / 1.234, False, "printed text"),
        ({"printed": "step 1: loss 1.234\nfailed\n"}, math.inf, False, "printed text"),
        ({"printed": "step 2: loss 1.234\ndone\n"}, 1, False, "printed text"),
    ],
)
def test_the_largest_difference_decides(changes, largest, same, of):
    found = agreement(FIRST, other(**changes))
    assert found.largest == pytest.approx(largest, rel=1e-6)
    assert (found.same, found.of) == (same, of)


def test_runs_that_differ_by_themselves_allow_for_that():
    close = other(losses=[2.0, 1.01])
    assert agreement(other(losses=[2.0, 1.02]), unchanged=(FIRST, close)).same
    assert not agreement(other(losses=[2.0, 1.02]), unchanged=(FIRST, FIRST)).same


def test_what_chance_decides_is_not_compared():
    timed = other(printed="step 1: loss 1.234\ntook 5.3 s\n"), other(printed="step 1: loss 1.234\ntook 9.1 s\n")
    found = agreement(other(printed="step 1: loss 1.234\ntook 2.2 s\n"), unchanged=timed)
    assert (found.compared, found.unstable) == (("losses", "outputs", "parameters"), ("printed text",))
    assert found.same
    blank = Results(losses=[1.0]), Results(losses=[3.0])
    assert agreement(Results(losses=[2.0]), unchanged=blank).said == "not compared: losses differ from run to run"
    assert agreement(Results(), unchanged=(Results(),)).said == "not compared: nothing was seen"
