"""How long steps take with and without the profiler: the price of looking."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from torchwhy.capture.schedule import Phase, Schedule

__all__ = ["NEAR", "Overhead", "StepClock"]

NEAR = 10  # unprofiled steps beside the recorded ones that these are compared with
KEPT = 1000  # unprofiled steps that are kept one by one
CHANGE = 0.1  # steps whose later half differs by this share of the median are no baseline if they are ordered, too
SETTLED = 0.05  # share of the median that its interval may be wide
LONG_NS = 2_000_000_000  # of recorded steps, together; no more are recorded then
MOST = 20  # recorded steps of a window that grows
DEVIATIONS = 1.64  # of a normal variable, on either side of its mean: 90 % lie between
ORDERED = 0.7  # Kendall's tau; 0.5 % of random orders of NEAR steps reach it
OWN_WORK = 0.5  # share of what recorded steps take longer that must be processor time: recording is work


@dataclass(frozen=True)
class Overhead:
    """Medians of wall time per step, from one step's beginning to the next, without synchronising devices.

    Attributes:
        baseline_us: median of unprofiled steps, microseconds; None where there was none that counts. They are the
            nearest ones: after the last window, when the search has ended; without any, before windows.
        baseline_n: how many steps that is. The program's first step is cold and left out.
        profiled_us: median of recorded steps, microseconds; None where none ended.
        profiled_n: how many steps that is.
        unlike: why the two differ for other reasons than recording; "" where none is known.
    """

    baseline_us: float | None
    baseline_n: int
    profiled_us: float | None
    profiled_n: int
    unlike: str = ""

    @property
    def ratio(self) -> float | None:
        """Recorded over unprofiled; 1.2 means that the profiler made steps 20% longer. None where that is unknown."""
        if self.baseline_us is None or self.profiled_us is None or self.unlike:
            return None
        return self.profiled_us / self.baseline_us


@dataclass(frozen=True)
class _Steps:
    numbers: array[int] = field(default_factory=lambda: array("q"))
    nanoseconds: array[int] = field(default_factory=lambda: array("q"))
    processor: array[int] = field(default_factory=lambda: array("q"))


class StepClock:
    """Stamps the steps of one schedule.

    Time between `end` and `begin` belongs to no step: there the profiler starts, stops and saves.

    Args:
        schedule: says which steps wait and which are recorded.
        cold_start: whether the first step is the program's first and therefore no fair baseline.
        clock: nanoseconds.
        processor: nanoseconds in which the threads of this process ran, all together.
    """

    def __init__(
        self,
        schedule: Schedule,
        cold_start: bool,
        clock: Callable[[], int] = time.perf_counter_ns,
        processor: Callable[[], int] = time.process_time_ns,
    ) -> None:
        """Begin the first step now."""
        self.schedule = schedule
        self.step = 0
        self._clock, self._processor = clock, processor
        self._ran = processor()
        self._began = clock()
        self._counts = not cold_start  # whether the current step is to be compared
        self._seen = {phase: _Steps() for phase in Phase}

    def end(self) -> None:
        """The current step is over."""
        duration = self._clock() - self._began
        if self._counts:
            seen = self._seen[self.schedule.phase(self.step)]
            seen.numbers.append(self.step)
            seen.nanoseconds.append(duration)
            seen.processor.append(self._processor() - self._ran)
        self._counts = True
        self.step += 1

    def leave_out(self) -> None:
        """The current step is not to be compared."""
        self._counts = False

    def begin(self) -> None:
        """The next step starts now."""
        self._ran = self._processor()
        self._began = self._clock()

    def is_settled(self) -> bool:
        """Return whether the recorded steps are enough to show their median, or as many as are worth their time.

        The interval is the one between two of the ordered durations that holds the median in about 90 % of cases, or
        between the first and the last where there are few.
        """
        durations = sorted(self._seen[Phase.ACTIVE].nanoseconds)
        count = len(durations)
        if count >= MOST or sum(durations) >= LONG_NS:
            return True
        outside = max(0, int((count - DEVIATIONS * count**0.5) / 2))
        return count > 1 and durations[-1 - outside] - durations[outside] <= SETTLED * median(durations)

    def unprofiled_us(self) -> float | None:
        """Return the median of the steps that ran before the first window, except for the first and those left out."""
        return _median_us(self._seen[Phase.WAIT].nanoseconds)

    def overhead(self, compiled: bool = False, busy: bool = False) -> Overhead:
        """Compare recorded steps with those after, or before, them.

        Args:
            compiled: whether `torch.compile` was at work in the recorded ones.
            busy: whether other programs kept the program from running meanwhile.
        """
        done, waited = self._seen[Phase.DONE], self._seen[Phase.WAIT]
        near, place = (done, slice(NEAR)) if done.numbers else (waited, slice(-NEAR, None))
        baseline, profiled = near.nanoseconds[place], self._seen[Phase.ACTIVE].nanoseconds
        worked = near.processor[place], self._seen[Phase.ACTIVE].processor
        if compiled:
            unlike = "something was compiled in the recorded steps"
        elif busy:
            unlike = "other programs kept the processors busy"
        else:
            unlike = _trend(done.nanoseconds[:NEAR]) or _other_cause((baseline, profiled), worked)
        return Overhead(_median_us(baseline), len(baseline), _median_us(profiled), len(profiled), unlike)

    def unrecorded(self) -> list[tuple[int, float]]:
        """Number and microseconds of the steps that ran unprofiled, the first ones if they are many."""
        return sorted(step for phase in (Phase.WAIT, Phase.DONE) for step in self._told(phase))[:KEPT]

    def _told(self, phase: Phase) -> Iterator[tuple[int, float]]:
        seen = self._seen[phase]
        for number, nanoseconds in zip(seen.numbers[:KEPT], seen.nanoseconds[:KEPT], strict=True):
            yield number, nanoseconds / 1000


def _median_us(durations_ns: Sequence[int]) -> float | None:
    return median(durations_ns) / 1000 if durations_ns else None


def _other_cause(wall: tuple[Sequence[int], Sequence[int]], processor: tuple[Sequence[int], Sequence[int]]) -> str:
    """Say that recorded steps took longer without as much more work, of pairs of unprofiled and recorded steps.

    Recording is work of the program's threads. A program that waits for the processor, a disk or another program takes
    longer without it.
    """
    if not (wall[0] and wall[1]):
        return ""
    longer, work = (median(recorded) - median(unprofiled) for unprofiled, recorded in (wall, processor))
    if longer <= CHANGE * median(wall[0]) or work >= OWN_WORK * longer:
        return ""
    return "the recorded steps took longer, but hardly more processor time"


def _trend(durations: Sequence[int]) -> str:
    """Say that steps become longer or shorter while the program runs; fewer than NEAR do not show it."""
    if len(durations) < NEAR:
        return ""
    pairs = [(late > early) - (late < early) for at, early in enumerate(durations) for late in durations[at + 1 :]]
    tau = sum(pairs) / len(pairs)
    half = len(durations) // 2
    change = median(durations[half:]) - median(durations[:half])
    if abs(tau) < ORDERED or abs(change) < CHANGE * median(durations):
        return ""
    return f"steps become {'longer' if change > 0 else 'shorter'} while the program runs"
