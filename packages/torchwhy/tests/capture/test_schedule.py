"""Which steps wait, warm up, are recorded."""

import pytest

from torchwhy.capture.schedule import Phase, Schedule
from torchwhy.errors import ArgumentError


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(
    "numbers", [(1, 1, 3, 1), (0, 0, 1, 3), (0, 0, 1, 0), (1, 2, 2, 4), (1, 1, 2, 0), (0, 0, 3, 2)]
)
def test_a_schedule_of_torch_is_the_same_schedule(numbers):
    from torch.profiler import schedule

    wait, warmup, active, repeat = numbers
    theirs = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
    assert Schedule.of_actions(theirs) == Schedule(*numbers)


def test_skip_first_is_part_of_the_only_wait():
    from torch.profiler import schedule

    once = schedule(skip_first=5, wait=1, warmup=1, active=2, repeat=1)
    assert Schedule.of_actions(once) == Schedule(6, 1, 2, 1)
    with pytest.raises(ArgumentError, match="skip_first needs repeat=1"):
        Schedule.of_actions(schedule(skip_first=5, wait=1, warmup=1, active=2, repeat=2))
    with pytest.raises(ArgumentError, match="must record a window within"):
        Schedule.of_actions(lambda step: None)


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize("numbers", [(1, 1, 3, 1), (0, 0, 1, 1), (3, 1, 2, 2), (0, 2, 1, 3)])
def test_phases_are_those_of_torch(numbers):
    from torch.profiler import ProfilerAction, schedule

    wait, warmup, active, repeat = numbers
    theirs = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat)
    ours = Schedule(*numbers)
    names = {"NONE": {Phase.WAIT, Phase.DONE}, "WARMUP": {Phase.WARMUP}, "RECORD": {Phase.ACTIVE}}
    for step in range(30):
        action = theirs(step)
        assert ours.phase(step) in names[action.name.removesuffix("_AND_SAVE")]
        assert ours.ends_window(step) == (action is ProfilerAction.RECORD_AND_SAVE)


def test_length_is_the_number_of_steps_it_needs():
    schedule = Schedule(wait=2, warmup=1, active=3, repeat=2)
    assert schedule.length == 12
    assert schedule.phase(11) is Phase.ACTIVE
    assert schedule.phase(12) is Phase.DONE


@pytest.mark.parametrize(("name", "value"), [("wait", -1), ("warmup", 1.5), ("active", 0), ("repeat", True)])
def test_wrong_numbers_are_refused_with_their_name(name, value):
    with pytest.raises(ArgumentError, match=f"{name} must be a whole number of steps"):
        Schedule(**{name: value})
