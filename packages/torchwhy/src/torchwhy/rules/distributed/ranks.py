"""Facts that only the traces of all ranks together show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.distributed.advice import COME_TOGETHER, START_EARLIER
from torchwhy.rules.rule import rule
from torchwhy.trace.model.intervals import Window
from torchwhy.wording import duration, enumeration, percent

if TYPE_CHECKING:
    from torchwhy.ranks.job import Job
    from torchwhy.ranks.summary import Summary

__all__ = ["exposed_transfer", "last_rank", "mutual_waiting", "rank_imbalance"]

_ALONE: Final = ("exposed-comm", "cpu-exposed-comm")
"""Rules on one rank whose advice about the transfer holds for the job."""


_EXPLAINS: Final = 0.3
"""A cause must account for at least this share of the lost time."""


@dataclass(frozen=True)
class _Straggler:
    """The rank that the others wait for.

    Attributes:
        position: among the job's ranks.
        lost: how long each other one waits for it, on average. saved: what is saved if it comes with the next one; us.
        part: of all waiting.
        count, every: in how many steps it was waited for most, of those with waiting; else collectives.
        stepped: whether `every` counts steps.
    """

    position: int
    lost: float
    saved: float
    part: float
    count: int
    every: int
    stepped: bool


@rule(
    "F3",
    "last-rank",
    source="a collective ends on all ranks together, so the rank with the shortest duration came last; 60% of steps",
    on="job",
)
def last_rank(job: Job, *, often: float = 0.6, share: float = 0.01, sure: float = 2.0) -> Iterator[Finding]:
    """The same rank keeps the others waiting.

    Sees: collectives matched over all ranks of their group (by number, else by order within the step) for which ranks
    waited. The rank on which such a collective is shortest came last. The rule reports a rank that causes 60 percent
    of the waiting and is the one most waited for in 60 percent of the steps. The waiting for it, less the waiting for
    the others, exceeds twice its standard error over the steps (more with few steps). Clocks of different ranks are
    never compared.

    Costs: every other rank waits that long, in each step. At stake is the time by which the collectives would begin
    earlier if it came with the next-to-last rank, or by which every other rank communicates longer than this one while
    it computes nothing.

    Fix: look at that rank's own trace: more work than the others have, a slower loader or host, a device that is
    throttled or shared.

    Known problems: a rank that comes last because another rank made it wait earlier is named, too. If two ranks are
    late together, neither is named.
    """
    found = _straggler(job, often, share, sure)
    if found is None:
        return
    table = job.stragglers()
    rank, window = job.numbers[found.position], _longest_window(job)
    rounds = "steps" if found.stepped else "collectives"
    yield Finding(
        title=f"Rank {rank} keeps the others waiting for {percent(min(found.lost / window.us, 1.0))} of the window: "
        f"longest of all ranks in {found.count} of {found.every} {rounds}",
        confidence="high" if job.matched.by_number else "medium",
        time_us=min(found.saved, window.us),
        window=window,
        evidence=tuple(
            Evidence(
                f"rank {table['rank'][i]}",
                int(table["last"][i]),
                float(table["waited_for_us"][i]),
                note=f"last to {table['last'][i]} of {table['of'][i]} collectives that made ranks wait",
            )
            for i in range(min(3, len(table)))
            if table["last"][i]
        ),
        cause=f"{percent(found.part)} of all waiting is for this rank. {_why_late(job, found.position, found.lost)}",
        fix=f"Compare rank {rank}'s trace with another one: its computation, its input and its host. If it "
        "computes the same in more time, its device is slower: check clocks, temperature and other programs.",
    )


@rule("F4", "rank-imbalance", source="spread of the time spent computing; 10%", on="job")
def rank_imbalance(job: Job, *, spread: float = 0.1, share: float = 0.02) -> Iterator[Finding]:
    """Ranks compute for different lengths of time.

    Sees: the time each rank computes (union over streams, communication left out) in the steps all of them recorded;
    fires where the longest exceeds that of the median rank by ten percent (of two ranks, the other one's). Silent where
    last-rank names the same rank, and where the others don't wait for that rank.

    Costs: in synchronous training every rank waits for the longest one. At stake is the time by which it exceeds the
    second-longest rank, but at most the time that the others wait.

    Fix: give ranks equal work: sort or bucket samples by length, split by tokens rather than by samples, balance the
    stages of a pipeline. Where the work is equal, look for a slower device.

    Known problems: ranks of a pipeline, or of experts, have different work by design.
    """
    compute = _computing(job)
    if len(job) < 2 or compute is None:
        return
    order = np.argsort(compute, kind="stable").tolist()
    shortest, middle, second, longest = order[0], order[(len(order) - 1) // 2], order[-2], order[-1]
    median = float(compute[middle])
    window = _window(job, longest)
    more = (float(compute[longest]) - median) / 1000
    if not median or more * 1000 < spread * median or more < share * window.us:
        return
    late = _straggler(job, **last_rank.in_force)
    if late is not None and late.position == longest:
        return
    over = float(compute[longest]) / median - 1
    ahead = (float(compute[longest]) - float(compute[second])) / 1000
    if job.compared and len(job.matched.instance):
        ahead = min(ahead, float(job.waiting[0][longest]) / 1000)
    if ahead < share * window.us:
        return
    yield Finding(
        title=f"Rank {job.numbers[longest]} computes {percent(over)} longer than "
        + ("the median rank" if len(job) > 2 else "the other one"),
        confidence="medium",
        time_us=min(ahead, window.us),
        window=window,
        evidence=tuple(
            Evidence(f"rank {job.numbers[i]}", 1, float(compute[i]) / 1000, note="computing")
            for i in dict.fromkeys((longest, middle, shortest))
        ),
        cause="Its work is larger, or its device is slower."
        + (" The devices differ." if len({s.device for s in job.summaries}) > 1 else ""),
        fix="Compare the sizes of the inputs over the ranks; balance by tokens or pixels instead of by samples. If "
        "they are equal, check that device's clocks and temperature.",
    )


@rule("F11", "exposed-transfer", source="exposed communication minus waiting, on the median rank; 5%", on="job")
def exposed_transfer(job: Job, *, share: float = 0.05) -> Iterator[Finding]:
    """Ranks transfer data while they compute nothing.

    Sees: the time in which a rank only communicates, minus its waiting for the last rank; of all ranks, the one with
    the median share of its window.

    Costs: that time, on every rank.

    Fix: overlap the exchange with computation, or move less.

    Known problems: the quickest rank's time of a collective counts as its transfer; that rank may have waited, too, for
    the link.
    """
    if len(job) < 2 or not job.compared:
        return
    waits = job.waiting[1] / 1000
    rest = [max(s.exposed / 1000 - float(waited), 0.0) for s, waited in zip(job.summaries, waits, strict=True)]
    middle = _middle([time / s.window.us if s.window.us else 0.0 for time, s in zip(rest, job.summaries, strict=True)])
    summary, window = job.summaries[middle], _window(job, middle)
    alone = next((f for f in summary.findings if f.slug in _ALONE), None)
    if alone is None or rest[middle] < share * window.us:
        return
    kinds = [(row["exposed_us"] - row["waiting_us"], row) for row in job.collectives().rows()]
    kinds.sort(key=lambda kind: -kind[0])
    yield Finding(
        title=f"For {percent(rest[middle] / window.us)} of its window rank {job.numbers[middle]} only transfers data; "
        f"for {percent(float(waits[middle]) / window.us)} it waits for other ranks",
        confidence="high" if job.matched.by_number else "medium",
        time_us=min(rest[middle], alone.time_us),
        window=window,
        evidence=tuple(
            Evidence(row["name"], max(1, round(row["count"])), transfer, note=row["library"])
            for transfer, row in kinds[:3]
        ),
        cause="Nothing else is ready to run during these exchanges; all ranks have reached them.",
        fix=START_EARLIER if alone.fix == COME_TOGETHER else alone.fix,
    )


@rule("F13", "mutual-waiting", source="waiting for the last rank, on the median rank; 5%", on="job")
def mutual_waiting(job: Job, *, share: float = 0.05) -> Iterator[Finding]:
    """Ranks wait for each other, and no single rank causes it.

    Sees: the time in which ranks wait for the last one to reach a collective, on the rank with the median wait, where
    last-rank names no rank: several come late, one after another or together.

    Costs: that time on every rank, whatever is exchanged.

    Fix: equal work in every step: samples of similar length, a fixed number of tokens per rank, loaders that keep up.

    Known problems: work that differs by design, such as experts' work, makes ranks wait as well.
    """
    if len(job) < 2 or _straggler(job, **last_rank.in_force) is not None:
        return
    waits = job.waiting[1] / 1000
    middle = _middle(waits.tolist())
    window = _window(job, middle)
    if float(waits[middle]) < share * window.us:
        return
    rows = [row for row in job.stragglers().rows() if row["last"]]
    total = sum(row["waited_for_us"] for row in rows)
    some = enumeration([f"{percent(row['waited_for_us'] / total)} is for rank {row['rank']}" for row in rows[:3]])
    together = 2 * float(job.saved.sum()) < float(job.waiting[0].sum())
    yield Finding(
        title=f"Ranks wait for each other for {percent(float(waits[middle]) / window.us)} of the window",
        confidence="high" if job.matched.by_number else "medium",
        time_us=min(float(waits[middle]), window.us),
        window=window,
        evidence=tuple(
            Evidence(
                f"rank {row['rank']}",
                row["last"],
                row["waited_for_us"],
                note=f"last to {row['last']} of {row['of']} collectives that made ranks wait",
            )
            for row in rows[:3]
        ),
        cause=f"Of all waiting, {some}." + (" Other ranks arrive little earlier than the last." if together else ""),
        fix="Give every rank equal work in each step: batches of samples of similar length, or of equally many tokens; "
        "enough loader workers on every rank. Smaller messages don't help.",
    )


def _straggler(job: Job, often: float, share: float, sure: float) -> _Straggler | None:
    """The rank that keeps the others waiting; None where it isn't always the same, or chance may have made it so."""
    table = job.stragglers()
    waited = table["waited_for_us"]
    total = float(waited.sum())
    if not total or len(job) < 2:
        return None
    lost, position = float(waited[0]), job.numbers.index(int(table["rank"][0]))
    # Where there are no steps, collectives are counted instead.
    stepped = any(s.steps for s in job.summaries)
    count, every = (int(table[name][0]) for name in (("most", "of_steps") if stepped else ("last", "of")))
    if count < often * every or lost < often * total or lost < share * _longest_window(job).us:
        return None
    if not _beyond_chance(job, position, count, every, sure, stepped=stepped):
        return None
    saved = float(job.saved[position]) / 1000
    if saved < share * _longest_window(job).us:  # others are as late
        return None
    # What the others transfer while this rank still computes is hidden behind its computation, and no part of waiting.
    exposed = [summary.exposed / 1000 for summary in job.summaries]
    hidden = min(time for i, time in enumerate(exposed) if i != position) - exposed[position]
    saved = max(saved, min(hidden, 2 * saved))  # what differs by more has other reasons
    return _Straggler(position, lost, saved, lost / total, count, every, stepped)


def _beyond_chance(job: Job, position: int, count: int, every: int, sure: float, *, stepped: bool) -> bool:
    """Whether a rank comes last by more than chance: by how long it was waited for, or without steps by how often."""
    if not stepped:
        chance = 1 / max(2.0, _group_size(job, position))
        return count - every * chance >= sure * math.sqrt(every * chance * (1 - chance))
    each = job.lost_by_step
    net = 2 * each[:, position] - each.sum(axis=1)
    if len(net) < 2:
        return False
    few = 1 + 2.3 / (len(net) - 1)  # about Student's quantiles, relative to the normal one
    return bool(net.mean() > sure * few * net.std(ddof=1) / math.sqrt(len(net)))


def _middle(values: list[float]) -> int:
    """The position of the median, of an even number the larger one."""
    return int(np.argsort(np.array(values), kind="stable")[len(values) // 2])


def _longest_window(job: Job) -> Window:
    return _window(job, max(range(len(job)), key=lambda i: job.summaries[i].duration))


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
    """Facts about the rank that comes last, from the summaries of all ranks."""

    def above(value: Callable[[Summary], int]) -> float:
        values = [value(s) for s in job.summaries]
        return (values[position] - float(np.median([v for i, v in enumerate(values) if i != position]))) / 1000

    computes, idle = above(lambda s: s.compute), above(lambda s: s.duration - s.busy)
    least = _EXPLAINS * lost_us
    if computes >= least:
        return f"It computes {duration(computes)} longer than the median of the others."
    own = _own_finding(job, position, least)
    if own:
        return f"More than the others' traces, its trace shows: {own}"
    if job.summaries[position].device and idle >= least:
        return f"Its device is idle {duration(idle)} longer than the median of the others: its host is late."
    return "Neither its computation nor its findings explain that: compare its trace with another one."


def _own_finding(job: Job, position: int, least_us: float) -> str:
    """The finding with which this rank exceeds the others most, if by at least this share."""
    times = [{f.slug: f.time_us for f in reversed(s.findings) if f.severity != "info"} for s in job.summaries]
    others = [found for i, found in enumerate(times) if i != position]
    excess = {
        slug: time - float(np.median([found.get(slug, 0.0) for found in others]))
        for slug, time in times[position].items()
    }
    slug = max(excess, key=lambda name: excess[name], default="")
    if not slug or excess[slug] < least_us:
        return ""
    finding = next(f for f in job.summaries[position].findings if f.slug == slug)
    return f"{finding.title} ({finding.code})."


def _window(job: Job, position: int) -> Window:
    window = job.summaries[position].window
    return Window(f"{window.name} on rank {job.numbers[position]}", window.start, window.end)
