"""Runs a program: its trace, and the record of what its host and device did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice, takewhile

from tests.simulator.machine import Instruction, Machine, Work, Workers, run_all
from tests.simulator.program import Program
from tests.simulator.script import WARM_UP, Plan, Script, late_rank, plan_of

Spans = list[tuple[int, int, str]]


@dataclass(frozen=True)
class Run:
    """A program that ran.

    Attributes:
        program, plan: what ran.
        machines: one a rank.
    """

    program: Program
    plan: Plan
    machines: tuple[Machine, ...]

    def completion(self, step: int, rank: int = 0) -> int:
        """When a step and the work launched in it are done."""
        machine = self.machines[rank]
        last = machine.works_at[step + 1]
        done = max((work.end for work in machine.works[:last]), default=0)
        return max(machine.marks[step + 1], done)

    @cached_property
    def time(self) -> int:
        """How long the recorded steps take, from the completion of the step before them, on the slowest rank."""
        return max(self._time(rank) for rank in range(len(self.machines)))

    @property
    def own_time(self) -> int:
        """The same on the first rank."""
        return self._time(0)

    def _time(self, rank: int) -> int:
        first, last = WARM_UP - 1, WARM_UP + self.program.steps - 1
        return self.completion(last, rank) - self.completion(first, rank)

    def window(self, rank: int = 0) -> tuple[int, int]:
        """From the beginning of the first recorded step until the host and the work of the last one are done."""
        return self.machines[rank].marks[WARM_UP], self.completion(WARM_UP + self.program.steps - 1, rank)

    def device(self, rank: int = 0) -> Spans:
        """What the device does, without a gap: compute, copy, communication, or "idle: " and why.

        Where several streams work, computing comes first, then copying. The device is idle because of the host until
        the work that ends the idleness is issued, and what the host does then is the reason; after that it is latency.
        """
        machine = self.machines[rank]
        edges = sorted({time for work in machine.works for time in (work.begin, work.end)} | {0, machine.now})
        cover: dict[str, list[tuple[int, int]]] = {
            kind: union([(work.begin, work.end) for work in machine.works if work.kind == kind])
            for kind in ("compute", "copy", "communication")
        }
        busy = union([span for spans in cover.values() for span in spans])
        out: Spans = []
        left = [(edges[0], edges[-1])]
        for kind, spans in cover.items():
            out += [(a, b, kind) for a, b in meeting(spans, left)]
            left = lacking(left, spans)
        begins: dict[int, Work] = {}
        for work in machine.works:
            if work.begin not in begins or work.issued < begins[work.begin].issued:
                begins[work.begin] = work
        at = 0
        for begin, end in lacking([(edges[0], edges[-1])], busy):
            issued = min(max(begins[end].issued, begin), end) if end in begins else end
            while at < len(machine.host) and machine.host[at][1] <= begin:
                at += 1
            out += [
                (max(a, begin), min(b, issued), f"idle: {doing}")
                for a, b, doing in takewhile(lambda span, until=issued: span[0] < until, islice(machine.host, at, None))
                if issued > begin
            ]
            if end > issued:
                out.append((issued, end, "idle: latency"))
        return sorted(out)

    def shares(self, rank: int = 0) -> dict[str, float]:
        """For each state of the device its part of the window."""
        begin, end = self.window(rank)
        total: dict[str, float] = {}
        for a, b, state in self.device(rank):
            length = min(b, end) - max(a, begin)
            if length > 0:
                total[state] = total.get(state, 0.0) + length / (end - begin)
        return total


def union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if end <= begin:
            continue
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((begin, end))
    return out


def meeting(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        begin, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if begin < end:
            out.append((begin, end))
        if one[i][1] <= other[j][1]:
            i += 1
        else:
            j += 1
    return out


def lacking(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of `one` lies outside `other`; both are in order and without overlap."""
    out, first = [], 0
    for begin, end in one:
        at = begin
        while first < len(other) and other[first][1] <= begin:
            first += 1
        for a, b in takewhile(lambda span, until=end: span[0] < until, islice(other, first, None)):
            if a > at:
                out.append((at, a))
            at = max(at, b)
        if at < end:
            out.append((at, end))
    return out


COSTS = {"python_function": 250, "cpu_op": 700, "user_annotation": 700, "cuda_runtime": 450}
"""What recording an event costs the host."""


@lru_cache(maxsize=8)
def instructions_of(program: Program, plan: Plan, late: bool) -> tuple[list[Instruction], Workers]:
    """What a rank does."""
    script = Script(program, plan, late)
    return script.write(), script.workers()


@lru_cache(maxsize=32)
def simulate(program: Program) -> Run:
    """Run a program."""
    plan = plan_of(Program(program.seed, program.planted))
    costs = COSTS if program.recording.costs else {}
    machines = []
    for rank in range(program.ranks):
        instructions, workers = instructions_of(replace(program, free=frozenset()), plan, rank == late_rank(program))
        machines.append(Machine(instructions, workers, costs, program.free))
    run_all(machines)
    return Run(program, plan, tuple(machines))


def saving(program: Program, *faults: str) -> int:
    """How much faster the recorded steps are without the faults, in nanoseconds: both are run."""
    return simulate(program).time - simulate(program.without(*faults)).time


def saving_from_start(program: Program, *faults: str) -> float:
    """The part of the time from the program's start to the end of the recorded steps that is saved without faults."""
    with_faults, without = (
        max(run.completion(WARM_UP + program.steps - 1, rank) for rank in range(program.ranks))
        for run in (simulate(program), simulate(program.without(*faults)))
    )
    return 1 - without / with_faults


def saving_of_resource(program: Program, resource: str) -> int:
    """The same if a resource were free, on the rank whose trace is judged: that of others doesn't limit it here.

    Free communication is a rank that meets no others: what it waits in its own exchanges is all that its trace shows.
    """
    return simulate(program).own_time - simulate(program.with_free(resource)).own_time
