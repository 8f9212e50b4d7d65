"""Samples of the stacks say where a program's Python is, with the line that runs."""

import threading
import time

from torchwhy.capture.stack_samples import StackSampler


def waits_here(seconds):
    time.sleep(seconds)


def test_the_line_that_runs_is_seen():
    sampler = StackSampler()
    waits_here(0.2)
    told = sampler.end()
    seen = [[told.frames[place] for place in told.stacks[which]] for which in told.which]
    line = waits_here.__code__.co_firstlineno + 1
    here = [stack for stack in seen if stack[0].endswith(f"test_stack_sampler.py({line}): waits_here")]
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
