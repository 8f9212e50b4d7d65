"""Recorded stacks do not disturb functions that the program has set to see its calls."""

import cProfile
import sys
import threading
import warnings

import pytest
import torch

from torchwhy.capture import profile

STEPS = 8
BEFORE = 2  # steps until the window


def mark():
    torch.ones(2).cos()


class Calls:
    """Counts the calls of `mark` that Python reports."""

    def __init__(self):
        self.seen = 0

    def note(self, frame, event, argument):
        self.seen += (frame.f_code, event) == (mark.__code__, "call")
        return self.note


class ByFunction(Calls):
    def begin(self):
        sys.setprofile(self.note)

    def end(self):
        is_set = sys.getprofile() == self.note
        sys.setprofile(None)
        return is_set


class ByTrace(Calls):
    def begin(self):
        sys.settrace(self.note)

    def end(self):
        is_set = sys.gettrace() == self.note
        sys.settrace(None)
        return is_set


class ByThreads(Calls):
    """Calls are seen in a thread for each step."""

    def begin(self):
        threading.setprofile(self.note)

    def end(self):
        is_set = threading.getprofile() == self.note
        threading.setprofile(None)
        return is_set


class ByProfiler:
    def __init__(self):
        self._profiler = cProfile.Profile()

    def begin(self):
        self._profiler.enable()

    def end(self):
        self._profiler.disable()
        return True

    @property
    def seen(self):
        calls = {entry.code: entry.callcount for entry in self._profiler.getstats()}
        # Calls that are open while PyTorch starts and stops are seen, too.
        assert calls[end_step.__code__] == calls[mark.__code__]
        return calls[mark.__code__]


def end_step(step):
    step()


def steps(calls, begins, step):
    for number in range(STEPS):
        if number == begins:
            calls.begin()
        if isinstance(calls, ByThreads):
            thread = threading.Thread(target=mark)
            thread.start()
            thread.join()
        else:
            mark()
        end_step(step)
    return calls.end(), calls.seen


@pytest.mark.parametrize("begins", [0, BEFORE, BEFORE + 1])
@pytest.mark.parametrize("kind", [ByFunction, ByTrace, ByThreads, ByProfiler])
def test_the_programs_function_sees_every_call(tmp_path, kind, begins):
    traced = sys.gettrace()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with profile(tmp_path / "run", wait=BEFORE - 1, warmup=1, active=2, stacks=True) as p:
            found = steps(kind(), begins, p.step)
        sys.settrace(traced)
    assert found == (True, STEPS - begins)
    assert p.result.steps_recorded == 2
    # From Python 3.12 on `cProfile` and PyTorch do not disturb each other.
    sets_function = kind in {ByFunction, ByThreads} or (kind is ByProfiler and sys.version_info < (3, 12))
    assert ["no stacks" in str(one.message) for one in warned] == [True] * (sets_function and begins < BEFORE)
