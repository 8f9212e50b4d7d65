"""A job: the traces of all ranks of one program, summed up and compared."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from torchfx.errors import TraceError
from torchfx.profiler.ranks.folder import traces_in
from torchfx.profiler.ranks.matching import Matched, match
from torchfx.profiler.ranks.merging import merged
from torchfx.profiler.ranks.reading import read_all
from torchfx.profiler.ranks.summary import Summary, Thresholds
from torchfx.profiler.rules.catalogue import all_rules, matching
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.trace.collectives import MOST_RANKS, bus_factor
from torchfx.profiler.trace.intervals import Intervals
from torchfx.profiler.trace.table import Table

__all__ = ["Job", "load_job"]

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

ALONE: Final = ("single-rank",)
"""Rules that speak of a rank seen alone; with the others at hand they have nothing to say."""


class Job:
    """The ranks of one program. Times are microseconds.

    Attributes:
        folder: where the traces were.
        summaries: one per rank, in order of `numbers`.
        numbers: the ranks.
        numbered: whether traces or names of files tell the ranks; else files were counted in order of their names.
        others: further traces of ranks that are there already; they take no part in anything.
        unreadable: files that could not be read, by name: why.
        ignored: names of files that are something else.
        wanted: the ranks that were asked for; None for all.
    """

    def __init__(
        self,
        folder: str,
        summaries: Sequence[Summary],
        unreadable: Mapping[str, str] | None = None,
        ignored: Sequence[str] = (),
        thresholds: Thresholds | None = None,
        wanted: Iterable[int] | None = None,
    ) -> None:
        self.folder = folder
        self.unreadable, self.ignored = dict(unreadable or {}), tuple(ignored)
        self.wanted = None if wanted is None else frozenset(wanted)
        self._thresholds = thresholds
        ordered = sorted(summaries, key=lambda s: s.file)
        ranks = _ranks(ordered)
        self.numbered = ranks is not None
        chosen = _one_each(ordered, range(len(ordered)) if ranks is None else ranks)
        self.numbers = tuple(rank for rank in sorted(chosen) if self.wanted is None or rank in self.wanted)
        self.summaries = tuple(ordered[chosen[rank]] for rank in self.numbers)
        self.others = tuple(s for i, s in enumerate(ordered) if i not in set(chosen.values()))

    def __len__(self) -> int:
        return len(self.summaries)

    @property
    def world_size(self) -> int | None:
        """How many ranks the program had, as the traces tell; the largest where they disagree."""
        sizes = (s.world_size for s in self.summaries if s.world_size is not None)
        return max((size for size in sizes if 0 < size <= MOST_RANKS), default=None)

    @cached_property
    def matched(self) -> Matched:
        """The collectives that ranks have in common."""
        return match(self.summaries)

    @cached_property
    def ranks(self) -> Table:
        """One row per rank: its window and what filled it, and the time it waited and was waited for."""
        every = self.summaries
        table = self.stragglers().sorted("rank", descending=False)

        def times(name: str) -> list[float]:
            return [getattr(s, name) / 1000 for s in every]

        return Table(
            {
                "rank": np.array(self.numbers, np.int64),
                "steps": np.array([len(s.steps) for s in every], np.int64),
                "step_us": [float(np.median(s.step_duration)) / 1000 if len(s.steps) else None for s in every],
                "window_us": np.array(times("duration")),
                "busy_us": np.array(times("busy")),
                "compute_us": np.array(times("compute")),
                "communication_us": np.array(times("communication")),
                "exposed_us": np.array(times("exposed")),
                "collectives": np.array([len(s.exchanges) for s in every], np.int64),
                "waited_us": self._waiting[1] / 1000,
                "waited_for_us": table["waited_for_us"],
                "device": [s.device for s in every],
                "file": [Path(s.file).name for s in every],
            }
        )

    def collectives(self) -> Table:
        """One row per kind of collective and size of its group.

        `count` and `time_us` are a rank's, on average; `waiting_us` is the part of the time spent on waiting for the
        last rank without computing. The bandwidths (medians, GB/s) come from the shortest duration on any rank.
        """
        m = self.matched
        keys = sorted({(m.names[n], int(s)) for n, s in zip(m.name.tolist(), m.size.tolist(), strict=True)})
        shortest, waited = m.shortest, m.waited
        rows = []
        for kind, size in keys:
            mine = (m.name == m.names.index(kind)) & (m.size == size)
            each = np.isin(np.arange(len(mine)), m.firsts) & mine
            sizes, transfer = m.bytes[each], shortest[each]
            known = (sizes > 0) & (transfer > 0)
            speed = float(np.median(sizes[known] / transfer[known])) if known.any() else None
            part = max(1, len(np.unique(m.rank[mine])))
            factor = bus_factor(kind, size)
            rows.append(
                {
                    "name": kind,
                    "group_size": size,
                    "count": round(int(mine.sum()) / part, 1),
                    "median_bytes": int(np.median(sizes[sizes >= 0])) if (sizes >= 0).any() else None,
                    "time_us": float(m.duration[mine].sum()) / 1000 / part,
                    "waiting_us": float(waited[mine].sum()) / 1000 / part,
                    "algorithm_gb_s": speed,
                    "bus_gb_s": None if speed is None or math.isnan(factor) else speed * factor,
                }
            )
        rows.sort(key=lambda row: -row["time_us"])
        columns = ("name", "group_size", "count", "median_bytes", "time_us", "waiting_us", "algorithm_gb_s", "bus_gb_s")
        return Table({name: [row[name] for row in rows] for name in columns})

    def stragglers(self) -> Table:
        """One row per rank, the one that was waited for longest first.

        `last` of `of` collectives it took part in and that made ranks wait, it came to last; `waited_for_us` is how
        long the others waited for it, on average, collectives side by side counted once; in `most` of `of_steps` steps
        with waiting it was the one waited for longest. Only collectives count whose ranks are all there.
        """
        m, n = self.matched, len(self)
        counted = self.waited_for
        last = m.last & counted
        others = np.bincount(m.instance, minlength=1)[m.instance] - 1
        lost = np.bincount(m.instance, weights=m.waited, minlength=1)[m.instance] / np.maximum(others, 1)
        steps, step = np.unique(m.step[last], return_inverse=True)
        by_step = np.zeros((len(steps), n))
        np.add.at(by_step, (step, m.rank[last]), lost[last])
        return Table(
            {
                "rank": np.array(self.numbers, np.int64),
                "last": np.bincount(m.rank[last], minlength=n),
                "of": np.bincount(m.rank[counted], minlength=n),
                "waited_for_us": self._waiting[0] / 1000,
                "most": np.bincount(by_step.argmax(axis=1), minlength=n),
                "of_steps": np.full(n, len(steps)),
            }
        ).sorted("waited_for_us")

    @cached_property
    def waited_for(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Entries of `matched` whose collective is complete and made its ranks wait 10 us and 10 % of it, or more."""
        m = self.matched
        if not len(m.instance):
            return np.zeros(0, np.bool_)
        longest = np.maximum.reduceat(m.waited, m.firsts)[m.instance]
        found: np.ndarray[Any, np.dtype[np.bool_]] = (
            m.complete & (longest >= 10_000) & (10 * longest >= np.maximum.reduceat(m.duration, m.firsts)[m.instance])
        )
        return found

    def diagnose(
        self, select: tuple[str, ...] = (), ignore: tuple[str, ...] = (), thresholds: Thresholds | None = None
    ) -> tuple[Finding, ...]:
        """Return what the rules find in the job and in its ranks, the most time at stake first.

        Args:
            select: codes, names or families ("F") of rules; all where empty.
            ignore: those to leave out.
            thresholds: for rules on jobs; those on single traces were given to `load_job`.
        """
        rules = all_rules()
        codes = (matching(select) if select else {rule.code for rule in rules}) - matching(ignore)
        given = {key.lower(): value for key, value in (thresholds or self._thresholds or {}).items()}
        findings = [f for f in merged(self.summaries, self.numbers, ALONE if len(self) > 1 else ()) if f.code in codes]
        for rule in rules:
            if rule.on == "job" and rule.code in codes:
                findings += rule.check(self, given.get(rule.slug, given.get(rule.code.lower(), {})))
        return tuple(sorted(findings, key=lambda f: (f.severity == "info", -f.time_us, f.code)))

    def to_dict(self, findings: Sequence[Finding] | None = None) -> dict[str, Any]:
        """Return everything as plain values.

        Args:
            findings: of `diagnose`; asked for with its defaults where None.
        """
        found = self.diagnose() if findings is None else findings
        return {
            "schema": 1,
            "folder": self.folder,
            "world_size": self.world_size,
            "numbered": self.numbered,
            "ranks": self.ranks.rows(),
            "collectives": self.collectives().rows(),
            "stragglers": self.stragglers().rows(),
            "findings": [finding.to_dict() for finding in found],
            "duplicates": [Path(s.file).name for s in self.others],
            "unreadable": [{"file": name, "reason": why} for name, why in sorted(self.unreadable.items())],
            "ignored": list(self.ignored),
        }

    @cached_property
    def _waiting(self) -> tuple[Floats, Floats]:
        """How long ranks waited for each rank, on average over those that did, and how long each waited; nanoseconds.

        A rank waits at the beginning of a collective. Where several run side by side on a rank, that time counts once.
        """
        m, n = self.matched, len(self)
        whose = np.zeros(int(m.instance.max()) + 1 if len(m.instance) else 0, np.int64)
        whose[m.instance[m.last]] = m.rank[m.last]
        waited_for, others, waits = np.zeros(n), np.zeros(n), np.zeros(n)
        rows = np.flatnonzero(self.waited_for & ~m.last)
        start, end, last = m.start, m.start + m.waited, whose[m.instance]
        for rank in range(n):
            mine = rows[m.rank[rows] == rank]
            waits[rank] = Intervals.union(start[mine], end[mine]).total
            for late in np.unique(last[mine]).tolist():
                same = mine[last[mine] == late]
                waited_for[late] += Intervals.union(start[same], end[same]).total
                others[late] += 1
        return waited_for / np.maximum(others, 1), waits


def load_job(
    folder: str | os.PathLike[str],
    ranks: Iterable[int] | None = None,
    processes: int | None = None,
    *,
    thresholds: Thresholds | None = None,
) -> Job:
    """Read the traces of all ranks of a program, each in a process of its own, and keep a summary of each.

    Args:
        folder: with one trace per rank in it, or one folder per rank.
        ranks: those to look at; all where None.
        processes: how many traces to read at once, which bounds the memory; as many as there are processors where
            None.
        thresholds: for the rules, by rule, then by name.

    Raises:
        TraceError: there is no such folder, or no trace in it can be read.
    """
    place = Path(folder)
    wanted = None if ranks is None else frozenset(ranks)
    traces, rest = traces_in(place)
    summaries, unreadable = [], {}
    for path, found in read_all(traces, processes, thresholds):
        if isinstance(found, str):
            unreadable[str(path.relative_to(place))] = found
        else:
            summaries.append(found)
    if not summaries:
        reasons = "; ".join(sorted(unreadable.values())[:3])
        raise TraceError(f"{folder} has no readable trace: {reasons}")
    job = Job(str(folder), summaries, unreadable, [str(path.relative_to(place)) for path in rest], thresholds, wanted)
    if not len(job):
        raise TraceError(f"{folder} has no trace of ranks {', '.join(map(str, sorted(wanted or ())))}")
    return job


def _ranks(summaries: Sequence[Summary]) -> list[int] | None:
    """The rank of each: as its trace tells, or as files are named where only that tells them apart; or None."""
    named = [s.named for s in summaries if s.named is not None]
    if len(set(named)) == len(summaries) > len({s.rank for s in summaries}):
        return named
    told = [s.named if s.rank is None else s.rank for s in summaries]
    known = [rank for rank in told if rank is not None]
    return known if len(known) == len(told) else None


def _one_each(summaries: Sequence[Summary], ranks: Sequence[int]) -> dict[int, int]:
    """Of several traces of one rank the position of the one whose steps most other ranks have too."""
    common: dict[tuple[str, ...], int] = {}
    for summary in summaries:
        common[summary.steps] = common.get(summary.steps, 0) + 1
    best: dict[int, int] = {}
    for i, (summary, rank) in enumerate(zip(summaries, ranks, strict=True)):
        if rank not in best or common[summary.steps] > common[summaries[best[rank]].steps]:
            best[rank] = i
    return best
