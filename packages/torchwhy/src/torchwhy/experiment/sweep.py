"""Time a workload over many sizes and find where overhead stops being what limits it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from torchwhy.experiment.case import Case, Schedule
from torchwhy.experiment.checks import require_runnable
from torchwhy.experiment.recording import read_once
from torchwhy.experiment.regime import OVERHEAD, UNDECIDED, busy, regime, share_of_device, share_over_floor
from torchwhy.experiment.workload import Workload, prepare, smallest
from torchwhy.timing import measure

__all__ = ["Point", "Sweep", "crossover", "finding", "sweep"]


@dataclass(frozen=True)
class Point:
    """One size: times per call, the share of the fastest that is work, and the rate that one reaches."""

    size: int
    median_s: float
    iqr_s: float
    min_s: float
    work_share: float
    flops_per_s: float
    disturbed: bool = False

    @property
    def regime(self) -> str:
        """`overhead-bound`, `mixed` or `compute-bound`; `undecided` on a busy machine."""
        return UNDECIDED if self.disturbed else regime(self.work_share)


@dataclass(frozen=True)
class Sweep:
    """A workload over sizes.

    Attributes:
        experiment: the workload's name.
        case: how it was run, with the smallest of the sizes.
        floor_s: the fastest call on size 1: overhead and nothing else.
        points: by size.
        crossover_size: where half the time is work; None if that lies outside the sizes.
    """

    experiment: str
    case: Case
    floor_s: float
    points: tuple[Point, ...]
    crossover_size: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        points = [{**asdict(point), "regime": point.regime} for point in self.points]
        return {**asdict(self), "points": points}


def sweep(
    workload: Workload,
    case: Case,
    sizes: Sequence[int],
    max_time_s: float = 3.0,
    progress: Callable[[int], object] = lambda size: None,
) -> Sweep:
    """Measure the case at each size, warm, `max_time_s` at most each.

    Raises:
        ArgumentError, CannotRunError: as `run_case`; sizes are checked before any runs.
    """
    cases = [replace(case, size=size, warm=True, schedule=Schedule(1, 1, 5)) for size in sizes]
    for each in cases:
        require_runnable(workload, each)
    floor_s = measure(prepare(workload, smallest(case)), max_time_s=max_time_s).min_s
    points = []
    for each in cases:
        progress(each.size)
        points.append(_point(workload, each, floor_s, max_time_s))
    return Sweep(workload.name, replace(cases[0], schedule=case.schedule), floor_s, tuple(points), crossover(points))


def crossover(points: Sequence[Point]) -> float | None:
    """Return the size from which on more than half the time is work, or None if the sizes do not enclose it.

    Between two sizes the ratio of work to overhead is taken as a power of the size. Disturbed points are left out.

    >>> shares = [(64, 0.2), (256, 0.8)]
    >>> crossover([Point(size, 1.0, 0.0, 1.0, share, 1.0) for size, share in shares])
    128.0
    """
    for a, b in reversed(list(pairwise(point for point in points if not point.disturbed))):
        if a.work_share < OVERHEAD <= b.work_share:
            low, high = _odds(a.work_share), _odds(b.work_share)
            return round(math.exp(math.log(a.size) + math.log(b.size / a.size) * -low / (high - low)), 6)
    return None


def finding(found: Sweep) -> str:
    """Return where overhead-bound turns into compute-bound, in one line; with a caution on a busy machine."""
    caution = "; roughly, since other processes took the processors" if any(p.disturbed for p in found.points) else ""
    return _where(found) + caution


def _where(found: Sweep) -> str:
    if found.crossover_size is not None:
        return f"overhead-bound below size {found.crossover_size:.0f}; above it, more than half the time is work"
    if found.points[-1].regime == "overhead-bound":
        return f"overhead-bound up to size {found.points[-1].size}: more than half of every time is overhead"
    return "more than half the time is work at every size: none is overhead-bound"


def _point(workload: Workload, case: Case, floor_s: float, max_time_s: float) -> Point:
    call = prepare(workload, case)
    m = measure(call, max_time_s=max_time_s, name=str(case))
    on_cpu = torch.device(case.device).type == "cpu"
    if on_cpu:
        share = share_over_floor(m.min_s, floor_s)
    else:
        share = share_of_device(m.min_s, read_once(workload, case, call).device_us * 1e-6)
    return Point(case.size, m.median_s, m.iqr_s, m.min_s, share, workload.flops(case) / m.min_s, on_cpu and busy(m))


def _odds(share: float) -> float:
    """Return the logarithm of work over overhead, finite also for shares of 0 and 1."""
    share = min(max(share, 1e-3), 1 - 1e-3)
    return math.log(share / (1 - share))
