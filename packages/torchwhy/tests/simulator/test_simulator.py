"""The simulator itself: its times add up, and its traces say what happened."""

import json
from itertools import pairwise

import numpy as np
import pytest

import torchwhy
from tests.simulator import FAULTS, draw, saving, simulate
from tests.simulator.chrome import trace_of, write
from tests.simulator.judge import cases

SEEDS = cases(3, 60)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_nanosecond_of_host_and_device_has_one_state(seed):
    run = simulate(draw(seed))
    for rank, machine in enumerate(run.machines):
        for spans in (machine.host, run.device(rank)):
            assert spans[0][0] == 0
            assert all(one[1] == other[0] for one, other in pairwise(spans))
            assert all(begin < end for begin, end, _ in spans)
        assert sum(run.shares(rank).values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_are_queues_and_work_follows_its_launch(seed):
    run = simulate(draw(seed))
    for machine in run.machines:
        for stream in {work.stream for work in machine.works}:
            queue = [work for work in machine.works if work.stream == stream]
            assert all(one.end < other.begin for one, other in pairwise(queue))
        assert all(work.issued < work.begin <= work.end for work in machine.works)
        calls = {event.correlation: event for event in machine.events if event.correlation}
        assert all(
            calls[work.correlation].begin <= work.issued <= calls[work.correlation].end for work in machine.works
        )


def test_collectives_end_together_after_the_last_rank_came():
    run = simulate(draw(3, ["straggler", "serial-allreduce"]))
    every = [{work.collective: work for work in machine.works if work.collective} for machine in run.machines]
    assert every[0]
    for key, work in every[0].items():
        others = [works[key] for works in every]
        assert {one.end for one in others} == {max(one.begin for one in others) + work.duration}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_trace_loads_with_the_same_times(seed, tmp_path):
    run = simulate(draw(seed))
    trace = torchwhy.load(write(run, tmp_path / "trace.json"))
    machine = run.machines[0]
    steps = trace.steps()
    marks = [machine.marks[number] for number in range(3, 3 + run.program.steps)]
    assert len(steps) == run.program.steps
    starts = [step["start_us"] for step in steps]
    assert np.diff(starts) == pytest.approx(np.diff(marks) / 1000, abs=3)
    inside = [work for work in machine.works if machine.marks["start"] <= work.begin < machine.marks["stop"]]
    written = [
        event for event in trace_of(run)["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    assert len(inside) == len(written)


@pytest.mark.parametrize(
    "fault",
    [name if index % 3 == 0 else pytest.param(name, marks=pytest.mark.many)
     for index, name in enumerate(name for name in FAULTS if not FAULTS[name].ranks)],
)  # fmt: skip
def test_a_fault_costs_time_in_some_program(fault):
    savings = [saving(draw(seed, [fault]), fault) / simulate(draw(seed, [fault])).time for seed in cases(2, 4)]
    assert max(savings) > 0.005, savings
    assert min(savings) > -0.02, savings


def test_the_same_seed_gives_the_same_trace():
    simulate.cache_clear()
    first = json.dumps(trace_of(simulate(draw(12))))
    simulate.cache_clear()
    assert json.dumps(trace_of(simulate(draw(12)))) == first
