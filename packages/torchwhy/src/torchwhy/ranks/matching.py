"""The same collective on all ranks, who came last to it, and how long the others waited.

Clocks of different machines disagree, so times of different files are never compared. Durations may be: a collective
ends on all ranks together, so the rank on which it is shortest came last, and the others waited for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from torchwhy.ranks.summary import Summary
from torchwhy.trace.file.columns import Flags, Floats, Int64
from torchwhy.trace.model.intervals import Intervals

__all__ = ["Matched", "match", "waited_for", "waiting"]

PAIRWISE = ("send", "recv", "send_recv")
SAME_SIZE = ("all_reduce", "all_gather", "reduce_scatter", "reduce")


@dataclass(frozen=True)
class Matched:
    """The collectives of all ranks, one entry per rank and collective, those of one collective together.

    Attributes:
        names, libraries: distinct kinds and libraries.
        name, library: indices into these. rank: position among the summaries. instance: which collective, from 0.
        step: number of the step it was launched in on that rank; -1 outside of steps.
        start, duration, exposed: nanoseconds on that rank; starts of different ranks say nothing about each other.
        bytes, size: of the collective (-1 and 0 unknown).
        complete: whether all ranks of its group are there (per entry).
        by_number: whether all were matched by their number in the group, rather than by their order in the step.
    """

    names: tuple[str, ...]
    libraries: tuple[str, ...]
    name: Int64
    library: Int64
    rank: Int64
    instance: Int64
    step: Int64
    start: Int64
    duration: Int64
    exposed: Int64
    bytes: Int64
    size: Int64
    complete: Flags
    by_number: bool

    @cached_property
    def shortest(self) -> Int64:
        """For each entry the shortest duration of its collective on any rank: the time without waiting."""
        if not len(self.instance):
            return self.duration
        found: Int64 = np.minimum.reduceat(self.duration, self.firsts)[self.instance]
        return found

    @cached_property
    def waited(self) -> Int64:
        """For each entry how long that rank waited for the last one while it computed nothing."""
        found: Int64 = np.minimum(self.duration - self.shortest, self.exposed)
        return found

    @cached_property
    def saved(self) -> Int64:
        """For each entry how long all other ranks of its collective waited at least.

        How much earlier the collective would begin if the last rank came together with the one before it.
        """
        if not len(self.instance):
            return self.waited
        others = np.where(self.last, np.iinfo(np.int64).max, self.waited)
        found: Int64 = np.minimum.reduceat(others, self.firsts)[self.instance]
        return found

    @cached_property
    def last(self) -> Flags:
        """Whether the entry is that of the rank that came last."""
        found = np.zeros(len(self.instance), np.bool_)
        order = np.lexsort((self.duration, self.instance))
        found[order[self.firsts]] = True
        return found

    @cached_property
    def firsts(self) -> Int64:
        """Where each collective's entries begin."""
        found: Int64 = np.flatnonzero(np.diff(self.instance, prepend=-1)).astype(np.int64)
        return found


def match(summaries: Sequence[Summary]) -> Matched:
    """Find the collectives that two or more ranks have in common."""
    columns = [_columns(i, summary) for i, summary in enumerate(summaries)]
    names = tuple(dict.fromkeys(name for s in summaries for name in s.exchanges.names))
    groups = tuple(dict.fromkeys(group for s in summaries for group in s.exchanges.groups))
    libraries = tuple(dict.fromkeys(library for s in summaries for library in s.exchanges.libraries))
    library = np.concatenate(
        [_translated(s.exchanges.libraries, libraries)[s.exchanges.library] for s in summaries] or [_NONE]
    )
    name = np.concatenate([_translated(s.exchanges.names, names)[s.exchanges.name] for s in summaries] or [_NONE])
    group = np.concatenate([_translated(s.exchanges.groups, groups)[s.exchanges.group] for s in summaries] or [_NONE])
    table = np.concatenate(columns, axis=1) if columns else np.zeros((8, 0), np.int64)
    rank, step, seq, start, duration, exposed, size_bytes, size = table
    numbered = seq >= 0
    # Without numbers the k-th of its kind in a step is the same on all ranks, where all have as many.
    place = np.where(numbered, seq, step)
    kind = _code(group, name, numbered.astype(np.int64), place)
    ordinal = _ordinal(kind, rank)
    usable = numbered | _as_many(kind, rank)
    usable &= ~np.isin(name, [i for i, text in enumerate(names) if text in PAIRWISE])
    key = _code(kind, ordinal)
    kept = np.flatnonzero(usable)
    kept = kept[np.lexsort((rank[kept], key[kept]))]
    _, instance, count = np.unique(key[kept], return_inverse=True, return_counts=True)
    fixed = np.isin(name[kept], [i for i, text in enumerate(names) if text in SAME_SIZE])
    agreeing = ~fixed | _all_equal(instance, size_bytes[kept])
    several = (count[instance] > 1) & agreeing
    kept, instance, count = kept[several], instance[several], count[instance[several]]
    members = np.where(size[kept] > 0, size[kept], len(summaries))
    _, instance = np.unique(instance, return_inverse=True)
    return Matched(
        names,
        libraries,
        name[kept],
        library[kept],
        rank[kept],
        instance.astype(np.int64),
        step[kept],
        start[kept],
        duration[kept],
        exposed[kept],
        size_bytes[kept],
        size[kept],
        count >= members,
        bool(numbered[kept].all()),
    )


def waited_for(m: Matched) -> Flags:
    """Entries whose collective is complete and made its ranks wait 10 us and 10% of it, or more."""
    if not len(m.instance):
        return np.zeros(0, np.bool_)
    longest = np.maximum.reduceat(m.waited, m.firsts)[m.instance]
    found: Flags = (
        m.complete & (longest >= 10_000) & (10 * longest >= np.maximum.reduceat(m.duration, m.firsts)[m.instance])
    )
    return found


def waiting(m: Matched, ranks: int) -> tuple[Floats, Floats]:
    """How long ranks waited for each rank, on average over those that did, and how long each waited; nanoseconds.

    A rank waits at the beginning of a collective. Where several run side by side on a rank, that time counts once.
    """
    whose = np.zeros(int(m.instance.max()) + 1 if len(m.instance) else 0, np.int64)
    whose[m.instance[m.last]] = m.rank[m.last]
    lost, others, waits = np.zeros(ranks), np.zeros(ranks), np.zeros(ranks)
    rows = np.flatnonzero(waited_for(m) & ~m.last)
    start, end, last = m.start, m.start + m.waited, whose[m.instance]
    for rank in range(ranks):
        mine = rows[m.rank[rows] == rank]
        waits[rank] = Intervals.union(start[mine], end[mine]).total
        for late in np.unique(last[mine]).tolist():
            same = mine[last[mine] == late]
            lost[late] += Intervals.union(start[same], end[same]).total
            others[late] += 1
    return lost / np.maximum(others, 1), waits


_NONE = np.zeros(0, np.int64)


def _columns(position: int, summary: Summary) -> Int64:
    x = summary.exchanges
    return np.stack(
        (np.full(len(x), position, np.int64), x.step, x.seq, x.start, x.duration, x.exposed, x.bytes, x.size)
    )


def _translated(own: tuple[str, ...], every: tuple[str, ...]) -> Int64:
    known = {text: i for i, text in enumerate(every)}
    return np.array([known[text] for text in own], np.int64)


def _code(*columns: Int64) -> Int64:
    """One number per row that is equal where all columns are."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, which = np.unique(column, return_inverse=True)
        _, code = np.unique(code * max(1, len(distinct)) + which, return_inverse=True)
    return code.astype(np.int64)


def _ordinal(kind: Int64, rank: Int64) -> Int64:
    """The how-many-th of its kind each row is on its rank, from 0."""
    order = np.lexsort((np.arange(len(kind)), rank, kind))
    fresh = np.diff(_code(kind, rank)[order], prepend=-1) != 0
    place = np.arange(len(kind))
    ordinal = np.zeros(len(kind), np.int64)
    ordinal[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return ordinal


def _as_many(kind: Int64, rank: Int64) -> Flags:
    """Whether all ranks that have any of a row's kind have equally many."""
    if not len(kind):
        return np.zeros(0, np.bool_)
    pair = _code(kind, rank)
    first = np.unique(pair, return_index=True)[1]
    counts = np.bincount(pair)[pair[first]]
    low, high = np.full(kind.max() + 1, np.iinfo(np.int64).max), np.zeros(kind.max() + 1, np.int64)
    np.minimum.at(low, kind[first], counts)
    np.maximum.at(high, kind[first], counts)
    found: Flags = low[kind] == high[kind]
    return found


def _all_equal(instance: npt.NDArray[np.integer], values: Int64) -> Flags:
    """Whether all entries of a row's collective have one value; entries are sorted by collective."""
    if not len(instance):
        return np.zeros(0, np.bool_)
    firsts = np.flatnonzero(np.diff(instance, prepend=-1))
    same = np.minimum.reduceat(values, firsts) == np.maximum.reduceat(values, firsts)
    found: Flags = same[instance]
    return found
