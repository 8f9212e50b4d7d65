"""How two jobs differ: their ranks side by side, and the rank that sets the pace in full."""

from __future__ import annotations

from dataclasses import dataclass

from torchwhy.difference.difference import Difference
from torchwhy.errors import ArgumentError
from torchwhy.ranks.job import Job
from torchwhy.ranks.summary import Summary

__all__ = ["JobDifference", "Pair", "between_jobs", "pace_setter", "paired"]


@dataclass(frozen=True)
class Pair:
    """A rank of both jobs."""

    rank: int
    a: Summary
    b: Summary

    def per_step_us(self, part: str) -> tuple[float, float]:
        """A part of the window ("duration", "compute", "exposed", ...) per step, on A and on B, microseconds."""
        a, b = (getattr(side, part) / 1000 / max(len(side.steps), 1) for side in (self.a, self.b))
        return a, b


@dataclass(frozen=True)
class JobDifference:
    """How job B differs from job A.

    Attributes:
        pairs: the ranks both have.
        only_a, only_b: ranks of one of them.
        rank: the one that sets B's pace.
        difference: of that rank's two recordings. Ranks that exchange data every step take equally long, so its verdict
            is the job's.
    """

    pairs: tuple[Pair, ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    rank: int
    difference: Difference

    def slower_than(self, fraction: float) -> bool | None:
        """See `Difference.slower_than`."""
        return self.difference.slower_than(fraction)


def between_jobs(a: Job, b: Job, pairs: tuple[Pair, ...], difference: Difference) -> JobDifference:
    """Put together what is known of two jobs: `difference` is of the rank that sets the pace."""
    shared = {pair.rank for pair in pairs}
    only_a, only_b = (tuple(rank for rank in job.numbers if rank not in shared) for job in (a, b))
    return JobDifference(pairs, only_a, only_b, pace_setter(pairs).rank, difference)


def paired(a: Job, b: Job) -> tuple[Pair, ...]:
    """Pair the ranks of two jobs by their numbers.

    Raises:
        ArgumentError: a job's ranks are unknown, or the jobs have no rank in common.
    """
    for job in (a, b):
        if not job.numbered:
            raise ArgumentError(
                f"the traces in {job.folder} must contain their ranks to be compared; name one trace of it"
            )
    pairs = tuple(
        Pair(rank, summary, b.summaries[b.numbers.index(rank)])
        for rank, summary in zip(a.numbers, a.summaries, strict=True)
        if rank in b.numbers
    )
    if not pairs:
        raise ArgumentError(f"{a.folder} and {b.folder} must have a rank in common, got {a.numbers} and {b.numbers}")
    return pairs


def pace_setter(pairs: tuple[Pair, ...]) -> Pair:
    """The rank that computes longest per step on B; the others wait for it."""
    return max(pairs, key=lambda pair: (pair.per_step_us("compute")[1], -pair.rank))
