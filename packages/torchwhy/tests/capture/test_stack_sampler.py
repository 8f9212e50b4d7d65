"""Samples of the stacks say where a program's Python is, with the line that runs."""

import gc
import json
import sys
import threading
import time

import pytest

from torchwhy.capture import stack_samples
from torchwhy.capture.stack_samples import StackSampler


def waits_here(seconds):
    time.sleep(seconds)


def test_the_line_that_runs_is_seen():
    line, here = waits_here.__code__.co_firstlineno + 1, []
    for _ in range(20):  # on a busy machine samples are rare
        sampler = StackSampler()
        waits_here(0.2)
        told = sampler.end()
        seen = [[told.frames[place] for place in told.stacks[which]] for which in told.which]
        here = [stack for stack in seen if stack[0].endswith(f"test_stack_sampler.py({line}): waits_here")]
        if len(here) > 5:
            break
    assert len(here) > 5
    assert told.lines[told.frames.index(here[0][0])] == "time.sleep(seconds)"
    assert told.times_ns == sorted(told.times_ns)
    assert len(told.times_ns) == len(told.which)


def test_the_sampler_is_no_thread_that_programs_count():
    before = threading.enumerate()
    sampler = StackSampler()
    assert threading.enumerate() == before
    sampler.end()


def test_no_sample_is_taken_after_the_end():
    sampler = StackSampler()
    sampler.end()
    first = len(sampler.end().times_ns)
    waits_here(0.05)
    assert len(sampler.end().times_ns) <= first + 1


def test_samples_are_bounded(monkeypatch):
    monkeypatch.setattr("torchwhy.capture.stack_samples.MOST", 16)
    monkeypatch.setattr("torchwhy.capture.stack_samples.EVERY_S", 0.001)
    sampler = StackSampler()
    waits_here(0.2)
    assert len(sampler.end().times_ns) <= 16


@pytest.fixture
def alone(monkeypatch):
    """As in a process without further threads: under pytest-xdist one waits for messages, and a sampler that ended may
    still have to give the switch interval back.
    """
    assert waits_until(lambda: not stack_samples._watching)
    frames, others = sys._current_frames, sys._current_frames().keys() - {threading.get_ident()}
    monkeypatch.setattr(sys, "_current_frames", lambda: {i: one for i, one in frames().items() if i not in others})


@pytest.mark.usefixtures("alone")
def test_a_call_that_holds_pythons_lock_is_seen_rather_than_the_next_one_that_releases_it():
    """With Python's usual switch interval 82% of the samples named the call that releases the lock (idle machine)."""
    assert any(seen < spent + 0.4 for seen, spent in (shares_of_sleeping() for _ in range(4)))


def shares_of_sleeping():
    """Of a loop that mostly parses: the part of its samples in the call that sleeps, and the part of its time."""
    text, parsing, sleeping = json.dumps(list(range(20_000))), 0.0, 0.0
    sampler = StackSampler()
    while parsing < 0.3:
        begin = time.perf_counter()
        json.loads(text)
        between = time.perf_counter()
        time.sleep(0.0001)
        parsing, sleeping = parsing + between - begin, sleeping + time.perf_counter() - between
    found = sampler.end()
    innermost = [found.lines[found.stacks[which][0]] for which in found.which]
    return innermost.count("time.sleep(0.0001)") / len(innermost), sleeping / (parsing + sleeping)


def waits_until(condition):
    limit = time.monotonic() + 10
    while not condition() and time.monotonic() < limit:
        time.sleep(0.01)
    return condition()


@pytest.mark.usefixtures("alone")
def test_the_switch_interval_is_shorter_while_one_thread_runs_and_the_programs_own_otherwise():
    before, ends = sys.getswitchinterval(), threading.Event()
    sampler, other = StackSampler(), threading.Thread(target=ends.wait)
    assert waits_until(lambda: sys.getswitchinterval() < before)
    other.start()
    assert waits_until(lambda: sys.getswitchinterval() == before)
    ends.set()
    other.join()
    assert waits_until(lambda: sys.getswitchinterval() < before)
    sampler.end()
    assert waits_until(lambda: sys.getswitchinterval() == before)


@pytest.mark.usefixtures("alone")
def test_a_switch_interval_that_the_program_sets_stays():
    before = sys.getswitchinterval()
    sampler = StackSampler()
    assert waits_until(lambda: sys.getswitchinterval() < before)
    try:
        sys.setswitchinterval(0.02)
        sampler.end()
        waits_here(0.05)
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_are_as_the_program_has_them_after_stacks_were_read(enabled):
    (gc.enable if enabled else gc.disable)()
    try:
        sampler = StackSampler(0.0005)
        until = time.perf_counter() + 0.05
        while time.perf_counter() < until:
            sum(range(100))
        sampler.end()
        until = time.perf_counter() + 10  # the last look may not be over yet
        while gc.isenabled() is not enabled and time.perf_counter() < until:
            time.sleep(0.01)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_no_collection_begins_in_python_3_11_while_frames_are_read(monkeypatch):
    enabled, read = [], threading.Event()

    def current_frames():
        enabled.append(gc.isenabled())
        read.set()
        return {}

    monkeypatch.setattr(sys, "_current_frames", current_frames)
    sampler = StackSampler(0.0005)
    assert read.wait(60)
    sampler.end()
    assert enabled == [sys.version_info[:2] != (3, 11)]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_fork_while_frames_are_read_leaves_collections_as_the_program_has_them(enabled):
    collections = stack_samples._Collections()
    (gc.enable if enabled else gc.disable)()
    try:
        with collections.waiting():
            collections.forked()
            assert gc.isenabled() is enabled
            with collections.waiting():  # a sampler of the child's
                pass
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
