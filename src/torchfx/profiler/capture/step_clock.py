"""How long steps take with and without the profiler: the price of looking."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from torchfx.profiler.capture.schedule import Phase, Schedule

__all__ = ["Overhead", "StepClock"]


@dataclass(frozen=True)
class Overhead:
    """Medians of wall time per step, from one step's beginning to the next, without synchronising devices.

    Attributes:
        baseline_us: median of unprofiled steps, microseconds; None where there was none that counts. They are those
            after the last window, when nothing is looked for any more; without any, those before and between windows.
        baseline_n: how many steps that is. The program's first step is cold and left out.
        profiled_us: median of recorded steps, microseconds; None where none ended.
        profiled_n: how many steps that is.
    """

    baseline_us: float | None
    baseline_n: int
    profiled_us: float | None
    profiled_n: int

    @property
    def ratio(self) -> float | None:
        """Recorded over unprofiled; 1.2 means that the profiler made steps 20% longer."""
        if self.baseline_us is None or self.profiled_us is None:
            return None
        return self.profiled_us / self.baseline_us


class StepClock:
    """Stamps the steps of one schedule.

    Time between `end` and `begin` belongs to no step: there the profiler starts, stops and saves.

    Args:
        schedule: tells waiting steps from recorded ones.
        cold_start: whether the first step is the program's first and therefore no fair baseline.
        clock: nanoseconds.
    """

    def __init__(self, schedule: Schedule, cold_start: bool, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        """Begin the first step now."""
        self.schedule = schedule
        self.step = 0
        self._clock = clock
        self._began = clock()
        self._counts = not cold_start  # whether the current step is to be compared
        self._durations = {phase: array("q") for phase in Phase}

    def end(self) -> None:
        """The current step is over."""
        duration = self._clock() - self._began
        if self._counts:
            self._durations[self.schedule.phase(self.step)].append(duration)
        self._counts = True
        self.step += 1

    def leave_out(self) -> None:
        """The current step is not to be compared."""
        self._counts = False

    def begin(self) -> None:
        """The next step starts now."""
        self._began = self._clock()

    def overhead(self) -> Overhead:
        """Compare recorded steps with those after, or before, them."""
        baseline = self._durations[Phase.DONE] or self._durations[Phase.WAIT]
        profiled = self._durations[Phase.ACTIVE]
        return Overhead(_median_us(baseline), len(baseline), _median_us(profiled), len(profiled))


def _median_us(durations_ns: array[int]) -> float | None:
    return median(durations_ns) / 1000 if durations_ns else None
