"""What only the traces of all ranks together can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.finding import Evidence, Finding, severity_of
from torchwhy.rules.rule import rule
from torchwhy.trace.model.intervals import Window
from torchwhy.wording import percent

if TYPE_CHECKING:
    from torchwhy.ranks.job import Job
    from torchwhy.ranks.summary import Summary

__all__ = ["last_rank", "rank_imbalance"]


@rule(
    "F3",
    "last-rank",
    source="a collective ends on all ranks together, so the rank with the shortest duration came last; 60% of steps",
    on="job",
)
def last_rank(job: Job, *, often: float = 0.6, share: float = 0.01, sure: float = 2.0) -> Iterator[Finding]:
    """The same rank keeps the others waiting.

    Sees: collectives matched over all ranks of their group (by number, else by order within the step) for which ranks
    waited; the one on which such a collective is shortest came last. Fires where one rank causes 60 percent of the
    waiting, is the one most waited for in 60 percent of the steps, and that isn't chance. Clocks of different ranks
    are never compared.

    Costs: every other rank waits that long, in each step.

    Fix: look at that rank's own trace: more work than the others have, a slower loader or host, a device that is
    throttled or shared.

    Known problems: a rank that comes last because another one made it wait earlier is named nevertheless.
    """
    table = job.stragglers()
    waited = table["waited_for_us"]
    total = float(waited.sum())
    if not total or len(job) < 2:
        return
    rank, lost = int(table["rank"][0]), float(waited[0])
    # Where there are no steps, collectives are counted instead.
    stepped = any(s.steps for s in job.summaries)
    count, every = (int(table[name][0]) for name in (("most", "of_steps") if stepped else ("last", "of")))
    position = job.numbers.index(rank)
    window = _window(job, max(range(len(job)), key=lambda i: job.summaries[i].duration))
    chance = 1 / max(2.0, _group_size(job, position))
    excess = (count - every * chance) / math.sqrt(max(every * chance * (1 - chance), 1e-9))
    if count < often * every or lost < often * total or excess < sure or lost < share * window.us:
        return
    lost = min(lost, window.us)
    yield Finding(
        title=f"Rank {rank} keeps the others waiting for {percent(lost / window.us)} of the time: longest of all in "
        f"{count} of {every} {'steps' if stepped else 'collectives'}",
        confidence="high" if job.matched.by_number else "medium",
        time_us=lost,
        window=window,
        evidence=tuple(
            Evidence(
                f"rank {table['rank'][i]}",
                int(table["last"][i]),
                float(waited[i]),
                note=f"last to {table['last'][i]} of {table['of'][i]} collectives that made ranks wait",
            )
            for i in range(min(3, len(table)))
            if table["last"][i]
        ),
        cause=f"It is behind {percent(lost / total)} of all waiting. {_why_late(job, position, lost)}",
        fix=f"Open rank {rank}'s trace beside another one: compare its computation, its input and its host. If it "
        "computes the same in more time, its device is slower: clocks, temperature, another program.",
    )


@rule("F4", "rank-imbalance", source="spread of the time spent computing; 10%, severe from 30%", on="job")
def rank_imbalance(job: Job, *, spread: float = 0.1, share: float = 0.02) -> Iterator[Finding]:
    """Ranks compute for different lengths of time.

    Sees: the time each rank computes (union over streams, communication left out) in the steps all of them recorded;
    fires where the longest exceeds that of the median rank by ten percent (of two ranks, the other one's).

    Costs: in synchronous training every rank waits for the longest one.

    Fix: give ranks equal work: sort or bucket samples by length, split by tokens rather than by samples, balance the
    stages of a pipeline. Where the work is equal, look for a slower device.

    Known problems: ranks of a pipeline, or of experts, have different work by design.
    """
    compute = _computing(job)
    if len(job) < 2 or compute is None:
        return
    order = np.argsort(compute, kind="stable").tolist()
    shortest, middle, longest = order[0], order[(len(order) - 1) // 2], order[-1]
    median = float(compute[middle])
    window = _window(job, longest)
    lost = (float(compute[longest]) - median) / 1000
    if not median or lost * 1000 < spread * median or lost < share * window.us:
        return
    over = float(compute[longest]) / median - 1
    yield Finding(
        title=f"Rank {job.numbers[longest]} computes {percent(over)} longer than "
        + ("the median rank" if len(job) > 2 else "the other one"),
        severity="high" if over >= 0.3 and lost >= 0.1 * window.us else severity_of(lost / window.us),
        confidence="medium",
        time_us=min(lost, window.us),
        window=window,
        evidence=tuple(
            Evidence(f"rank {job.numbers[i]}", 1, float(compute[i]) / 1000, note="computing")
            for i in dict.fromkeys((longest, middle, shortest))
        ),
        cause="Its work is larger, or its device is slower."
        + (" The devices differ." if len({s.device for s in job.summaries}) > 1 else ""),
        fix="Compare sizes of inputs over ranks; balance by tokens or pixels instead of by samples. If they are equal, "
        "check that device's clocks and temperature.",
    )


def _computing(job: Job) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Time computing per rank in the steps that all have, or in the windows where there are no steps at all."""
    every = job.summaries
    if not any(s.steps for s in every):
        return np.array([s.compute for s in every], np.int64)
    common = set(every[0].steps).intersection(*(s.steps for s in every[1:]))
    if not common:
        return None
    return np.array(
        [int(s.step_compute[[name in common for name in s.steps]].sum()) for s in every],
        np.int64,
    )


def _group_size(job: Job, position: int) -> float:
    mine = job.waited_for & (job.matched.rank == position)
    sizes = job.matched.size[mine]
    return float(np.median(np.where(sizes > 0, sizes, len(job)))) if len(sizes) else float(len(job))


def _why_late(job: Job, position: int, lost_us: float) -> str:
    """What the summaries of the ranks say about the one that comes last."""

    def above(value: Callable[[Summary], int]) -> float:
        values = [value(s) for s in job.summaries]
        middle = float(np.median([v for i, v in enumerate(values) if i != position]))
        return values[position] / middle - 1 if middle > 0 else 0.0

    computes, idle = above(lambda s: s.compute), above(lambda s: s.duration - s.busy)
    if computes >= 0.05:
        return f"It computes {percent(computes)} longer than the others."
    own = _own_finding(job, position, lost_us)
    if own:
        return f"Its trace shows, more than the others': {own}"
    if job.summaries[position].device and idle >= 0.1:
        return (
            f"It computes no longer than the others, but its device is idle {percent(idle)} longer: its host is late."
        )
    return "It computes no longer than the others; what delays it must be looked for in its trace."


def _own_finding(job: Job, position: int, lost_us: float) -> str:
    """The finding with which this rank exceeds the others most, if by a good part of what is lost."""
    times = [{f.slug: f.time_us for f in reversed(s.findings) if f.severity != "info"} for s in job.summaries]
    others = [found for i, found in enumerate(times) if i != position]
    excess = {
        slug: time - float(np.median([found.get(slug, 0.0) for found in others]))
        for slug, time in times[position].items()
    }
    slug = max(excess, key=lambda name: excess[name], default="")
    if not slug or excess[slug] < 0.3 * lost_us:
        return ""
    finding = next(f for f in job.summaries[position].findings if f.slug == slug)
    return f"{finding.title} ({finding.code})."


def _window(job: Job, position: int) -> Window:
    window = job.summaries[position].window
    return Window(f"{window.name} on rank {job.numbers[position]}", window.start, window.end)
