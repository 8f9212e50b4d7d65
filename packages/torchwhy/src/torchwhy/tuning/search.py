"""From a program to the changes that make it faster: profile, choose, try, combine."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from torchwhy.capture.launch.program import Program
from torchwhy.difference.noise import shift_of
from torchwhy.errors import ArgumentError
from torchwhy.timing.machine import CpuTimes, load_between, read_cpu_times
from torchwhy.tuning.catalogue import changes_for, combined
from torchwhy.tuning.change import Change
from torchwhy.tuning.records import Record
from torchwhy.tuning.runs import GRACE_S, Runs
from torchwhy.tuning.trial import FEWEST_ROUNDS, ROUNDS, SCREENING, ProgramFailedError, Tried, try_changes
from torchwhy.wording import counted, duration, seconds

__all__ = ["Search", "search"]

SHORTEST_BUDGET_S: Final = 30.0

_RUNS_OF_A_CHANGE: Final = 3 * SCREENING + 2 * (FEWEST_ROUNDS - SCREENING)
"""Runs that one change takes if it is measured to the end, two unchanged ones in each of the first rounds included."""

STEPPING: Final = 60
"""The steps of a run take the budget divided by this number, unless the program ends earlier."""

PROFILING: Final = 4
"""Profiling, and the first run, may take such a part of the budget each."""

PATIENCE: Final = 10
"""A run may take this many times as long as the unchanged program's, and at least two minutes, for instance to
compile."""


@dataclass(frozen=True)
class Search:
    """The result of a search.

    Attributes:
        command: the program's command line.
        label: what steps are, such as "SGD.step"; "" where none were found and whole runs were timed.
        steps: that count in each run.
        step_us: the median over the unchanged program's runs.
        tried: every change that fits the program, in the order in which they were to be tried.
        together: the changes that help, measured at once; None where fewer than two do.
        best: what to keep, by index into `tried`; empty where nothing helps.
        budget_s, spent_s: seconds to spend, and spent.
        caveats: sentences that limit the trust in this.
    """

    command: tuple[str, ...]
    label: str
    steps: int
    step_us: float
    tried: tuple[Tried, ...]
    together: Tried | None
    best: tuple[int, ...]
    budget_s: float
    spent_s: float
    caveats: tuple[str, ...]


def search(
    program: Program,
    budget_s: float,
    *,
    say: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
    runs: Runs | None = None,
) -> Search:
    """Profile a program, try what may answer its findings, and say what makes it faster.

    Args:
        program: is run many times, in this working folder.
        budget_s: seconds that everything may take together, 30 or more.
        say: gets lines of progress.
        clock: returns seconds; tests pass their own.
        runs: runs the program; tests pass their own.

    Raises:
        ArgumentError: there is no such program, or the budget is too small for it.
        ProgramFailedError: the program does not run.
    """
    if not budget_s >= SHORTEST_BUDGET_S:
        raise ArgumentError(f"--budget must be {SHORTEST_BUDGET_S:g} s at least, got {budget_s:g}")
    if program.target == "-":
        raise ArgumentError("the program must be a file or a module, since it is run many times, got -")
    program.check()
    with tempfile.TemporaryDirectory(prefix="torchwhy-try-") as folder:
        return _Search(runs or Runs(program, Path(folder)), budget_s, say, clock).found()


class _Search:
    def __init__(self, runs: Runs, budget_s: float, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._runs, self._budget_s, self._say, self._clock = runs, budget_s, say, clock
        self._begun_s = clock()
        self._caveats: list[str] = []
        self._first = Record()  # the run that finds out how to measure
        self._fewest = 0
        self._wall_s = 0.0  # of a run of the unchanged program, by the newest measurements

    def found(self) -> Search:
        before = read_cpu_times()
        self._say("profiling the program")
        stakes, why = self._runs.profile(self._budget_s / PROFILING)
        if why:
            self._caveats.append(
                f"The program could not be profiled ({why}): changes are not tried by what is at stake."
            )
        self._look()
        every = changes_for(self._first.facts, stakes)
        most = self._affordable()
        if most < 1:
            spent_s = self._budget_s - self._left_s()
            raise ArgumentError(
                f"--budget must be {math.ceil((spent_s + _RUNS_OF_A_CHANGE * self._wall_s) / 10) * 10} or more: a run "
                f"takes {seconds(self._wall_s)}, and a change {_RUNS_OF_A_CHANGE} runs, got {self._budget_s:g}"
            )
        self._say(f"trying {counted(min(most, len(every)), 'change')}; a run takes {seconds(self._first.wall_s)}")
        tried: list[Tried] = []
        unchanged: list[Record] = []
        while len(tried) < len(every) and most > 0:
            more, beside = try_changes(
                every[len(tried) :][:most], self._measure, plan=self._plan, affordable=self._go_on,
                time_left=self._time_left, family=len(every),
            )  # fmt: skip
            tried += more
            unchanged += beside
            self._wall_s = median(record.wall_s for record in beside) if beside else self._wall_s
            most = self._affordable()  # others may have stopped using the machine
        for change in every[len(tried) :]:
            reason = f"no time within the budget of {self._budget_s:g} s"
            tried.append(Tried(change, "could not be tried", shift_of([], []), 0.0, reason=reason))
        best = _best_of_each_kind(tried)
        together = self._together([tried[i].change for i in best]) if len(best) > 1 else None
        if together is not None and (together.kind != "helps" or together.shift.ratio > tried[best[0]].shift.ratio):
            best = best[:1]
        self._warn(before, read_cpu_times())
        example = unchanged[0] if unchanged else self._first
        steps = sorted(record.step_us for record in unchanged or [self._first])
        return Search(
            tuple(self._runs.program.command[1:]), self._first.label, len(example.steps_us) - example.cold,
            steps[len(steps) // 2], tuple(tried), together, tuple(best), self._budget_s, self._clock() - self._begun_s,
            tuple(self._caveats),
        )  # fmt: skip

    def _look(self) -> None:
        """Run the program once to see what can be changed, and how long a run has to be."""
        most_s, limit_s = self._budget_s / STEPPING, self._budget_s / PROFILING
        self._first = first = self._runs.run(None, limit_s=limit_s, most_s=most_s)
        if first.error and first.wall_s >= limit_s:
            raise ArgumentError(
                f"--budget must be larger: a run takes more than {seconds(limit_s)}, got {self._budget_s:g}"
            )
        if first.error:
            raise ProgramFailedError(first.error)
        self._wall_s = first.wall_s
        self._fewest = len(first.steps_us) if first.ended_early else 10**9
        if not first.source:
            self._caveats.append("No steps were found: each run is timed from when PyTorch is imported to its end.")
        else:
            self._say(f"{counted(len(first.steps_us), 'step')} ({first.label}) of {duration(first.step_us)}")

    def _measure(self, change: Change | None) -> Record | None:
        """Run the program once; None if the budget ended before the run did."""
        patience_s, left_s = max(PATIENCE * self._first.wall_s, 120.0), self._left_s()
        limit_s = min(patience_s, left_s)
        record = self._runs.run(change, limit_s=limit_s, source=self._first.source, fewest=self._fewest, most_s=0.0)
        if record.error and limit_s < patience_s and record.wall_s >= limit_s:
            return None
        name = change.name if change else "unchanged"
        self._say(f"  {name}: " + (f"failed: {record.error}" if record.error else duration(record.step_us)))
        return record

    def _left_s(self) -> float:
        """Seconds for runs: a run that has to be ended may take some more."""
        return self._budget_s - GRACE_S - (self._clock() - self._begun_s)

    def _time_left(self) -> bool:
        return self._left_s() > 0

    def _affordable(self) -> int:
        """How many changes fit into the budget, if one of them has to be measured to the end."""
        runs = self._left_s() / self._wall_s
        others = (runs - _RUNS_OF_A_CHANGE) / SCREENING
        return int(others) + 1 if others >= 0 else 0

    def _go_on(self, walls_s: Sequence[float], rounds: int) -> int:
        """How many changes, the first ones, there is time for, now that it is known how long their runs take."""
        spent_s, left_s = 2 * self._wall_s, self._left_s() - 2 * (FEWEST_ROUNDS - SCREENING) * self._wall_s
        fit = 0
        for wall_s in walls_s:
            spent_s += wall_s
            fit += rounds * spent_s <= left_s
        return max(fit, 1)

    def _plan(self, walls_s: Sequence[float]) -> tuple[int, int]:
        """How many of the changes that look faster continue, and to how many rounds: as many as can be decided in time.

        The first continues in any case. Where several do, time is kept to measure them together.
        """
        left_s, round_s = self._left_s(), self._wall_s
        go_on, rounds = 0, FEWEST_ROUNDS
        for wall_s in walls_s:
            round_s += wall_s
            together_s = 3 * SCREENING * self._wall_s if go_on else 0.0
            fit = SCREENING + int((left_s - together_s) / round_s)
            if go_on and fit < FEWEST_ROUNDS:
                break
            go_on, rounds = go_on + 1, min(max(fit, FEWEST_ROUNDS), ROUNDS)
        if go_on:
            self._say(f"{counted(len(walls_s), 'change')} may help: {counted(rounds - SCREENING, 'more round')}")
        return go_on, rounds

    def _together(self, helping: Sequence[Change]) -> Tried | None:
        self._say(f"measuring {counted(len(helping), 'change')} together")
        left = int(self._left_s() / (3 * self._wall_s))
        rounds = min(max(left, SCREENING), FEWEST_ROUNDS)
        [tried], _ = try_changes(
            [combined(tuple(helping))], self._measure, plan=lambda walls_s: (1, rounds), screening=rounds,
            time_left=self._time_left,
        )  # fmt: skip
        return tried

    def _warn(self, before: CpuTimes | None, after: CpuTimes | None) -> None:
        load = load_between(before, after)
        if load is not None and load.others > load.cpus / 4 and os.name == "posix":
            self._caveats.append(
                f"Other programs used {load.others:.1f} of {load.cpus} processors. Numbers of threads and workers that "
                "help at the same time may not help alone: repeat it on an idle machine."
            )


def _best_of_each_kind(tried: Sequence[Tried]) -> list[int]:
    """The fastest of the alternatives of each kind that helps, the fastest first."""
    found: dict[str, int] = {}
    for place in sorted((i for i, one in enumerate(tried) if one.kind == "helps"), key=lambda i: tried[i].shift.ratio):
        found.setdefault(tried[place].change.kind, place)
    return list(found.values())
