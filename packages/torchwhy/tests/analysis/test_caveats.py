"""A busy machine is told with the verdict, because it may turn it."""

import pytest

from tests.analysis.programs import computing
from torchwhy.analysis.caveats import caveats

BUSY = {"wall_us": 1000.0, "cpu_us": 600.0, "waited_us": 300.0, "load": 6.24, "cores": 2}


def told(noted):
    return caveats(computing(torchwhy_processor_time=noted).trace(), "compute-bound", frozenset())


def test_a_recording_that_waited_for_a_processor_says_so():
    (sentence,) = told(BUSY)
    assert sentence.startswith(
        "The machine was busy (load average 6.2 on 2 cores): for 30% of this recording the program waited for a "
        "processor."
    )


def test_without_a_load_average_the_waiting_is_told():
    (sentence,) = told({**BUSY, "load": None})
    assert sentence.startswith("The machine was busy: for 30% of this recording")


@pytest.mark.parametrize("noted", [{**BUSY, "waited_us": 50.0}, {**BUSY, "waited_us": None}, {}, [1], "busy", None])
def test_what_hardly_waited_or_does_not_tell_is_silent(noted):
    assert told(noted) == ()
