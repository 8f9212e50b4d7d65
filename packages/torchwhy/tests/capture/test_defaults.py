"""What nobody asked for: as many steps as their median needs, and Python stacks where they cost little."""

import sys

import pytest

from torchwhy.capture.python_calls import PythonCalls

STEADY = "0.02"
UNSTEADY = "0.02 + 0.03 * (step % 2)"
LOOP = """
import time
import torch

def double(x):
    return x + x

net = torch.nn.Linear(4, 4)
for step in range({steps}):
    time.sleep({time})
    for _ in range({calls}):
        double(1)
    net(torch.ones(1, 4))
"""


@pytest.fixture
def recorded(profile_program, tmp_path):
    def record(*options, time=STEADY, calls=0, steps=40):
        (tmp_path / "program.py").write_text(LOOP.format(time=time, calls=calls, steps=steps))
        return profile_program("--step-on", "forward", *options, program=tmp_path / "program.py")

    return record


@pytest.mark.many
def test_steps_that_vary_are_recorded_until_their_median_is_known(recorded):
    ran = recorded(time=UNSTEADY)
    assert ran.steps() == list(range(4, 24))
    assert ran.json("run.json")["steps_recorded"] == 20
    assert "active 3 or more" in ran.report


@pytest.mark.many
@pytest.mark.parametrize(("options", "steps"), [(("--active", "4"), [4, 5, 6, 7]), (("--repeat", "2"), [4, 5, 6])])
def test_a_number_asked_for_is_kept_to(recorded, options, steps):
    assert recorded(*options, time=UNSTEADY).steps() == steps


@pytest.mark.many
def test_a_program_that_ends_in_a_window_that_grows_is_no_news(recorded):
    ran = recorded(time=UNSTEADY, steps=10)
    assert ran.steps() == [4, 5, 6, 7, 8, 9]
    assert "short" not in ran.report


@pytest.mark.many
@pytest.mark.parametrize(
    ("options", "calls", "with_stacks"),
    [((), 20, True), ((), 19_000, False), pytest.param(("--no-stacks",), 20, False, marks=pytest.mark.many)],
)
def test_stacks_are_recorded_where_they_cost_little(recorded, options, calls, with_stacks):
    ran = recorded("--active", "2", *options, calls=calls, steps=8)
    trace = ran.trace()
    assert bool(trace.get("with_stack")) is with_stacks
    assert any("double" in event["name"] for event in trace["traceEvents"]) is with_stacks


def test_calls_are_counted_unless_the_program_looks_at_them_itself():
    counting = PythonCalls()
    for _ in range(10):
        (lambda: None)()
    assert 10 <= counting.end() < 15
    assert sys.getprofile() is None

    def own(frame, event, argument):
        pass

    sys.setprofile(own)
    try:
        assert PythonCalls().end() is None
        assert sys.getprofile() is own
    finally:
        sys.setprofile(None)
