"""A job: the traces of all ranks of one program, summed up and compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from torchwhy.ranks.matching import Matched, match, waited_for, waiting
from torchwhy.ranks.summary import Summary
from torchwhy.trace.derived.collectives import MOST_RANKS, bus_factor
from torchwhy.trace.file.columns import Flags, Floats
from torchwhy.trace.tables.table import Table
from torchwhy.wording import counted

__all__ = ["Job"]

COLLECTIVE_COLUMNS: Final = (
    "name",
    "library",
    "group_size",
    "count",
    "median_bytes",
    "time_us",
    "exposed_us",
    "waiting_us",
    "algorithm_gb_s",
    "bus_gb_s",
)


class Job:
    """The ranks of one program. Times are microseconds.

    Attributes:
        folder: where the traces were.
        summaries: one per rank, in order of `numbers`.
        numbers: the ranks.
        numbered: whether traces or names of files show the ranks; else files were counted in order of their names.
        others: further traces of ranks that are there already; they take no part in anything.
        unreadable: files that could not be read, by name: why.
        ignored: names of files that are something else.
        wanted: the ranks that were requested; None for all.
        failed: rules that broke off, by code: the error in a line. Those on jobs are there after they were asked.
    """

    def __init__(
        self,
        folder: str,
        summaries: Sequence[Summary],
        unreadable: Mapping[str, str] | None = None,
        ignored: Sequence[str] = (),
        wanted: Iterable[int] | None = None,
    ) -> None:
        self.folder = folder
        self.unreadable, self.ignored = dict(unreadable or {}), tuple(ignored)
        self.wanted = None if wanted is None else frozenset(wanted)
        self.failed: dict[str, str] = {}
        ordered = sorted(summaries, key=lambda s: s.file)
        ranks = _ranks(ordered)
        self.numbered = ranks is not None
        chosen = _one_each(ordered, range(len(ordered)) if ranks is None else ranks)
        self.numbers = tuple(rank for rank in sorted(chosen) if self.wanted is None or rank in self.wanted)
        self.summaries = tuple(ordered[chosen[rank]] for rank in self.numbers)
        for rank, summary in zip(self.numbers, self.summaries, strict=True):
            for code, error in summary.failed.items():
                self.failed.setdefault(code, f"on rank {rank}: {error}")
        self.others = tuple(s for i, s in enumerate(ordered) if i not in set(chosen.values()))

    def __len__(self) -> int:
        return len(self.summaries)

    @property
    def world_size(self) -> int | None:
        """How many ranks the program had, as the traces show; the largest where they disagree."""
        sizes = (s.world_size for s in self.summaries if s.world_size is not None)
        return max((size for size in sizes if 0 < size <= MOST_RANKS), default=None)

    @cached_property
    def matched(self) -> Matched:
        """The collectives that ranks have in common."""
        return match(self.summaries)

    @cached_property
    def ranks(self) -> Table:
        """One row per rank: its window and what filled it, the time it waited and was waited for, and what limits it.

        `straggling` is the part of its window for which others waited for it; `limit` and `finding` (the name of the
        first rule, "" for none) concern the rank's trace alone.
        """
        every = self.summaries
        table = self.stragglers().sorted("rank", descending=False)
        window = np.array([s.duration / 1000 for s in every])

        def times(name: str) -> list[float]:
            return [getattr(s, name) / 1000 for s in every]

        return Table(
            {
                "rank": np.array(self.numbers, np.int64),
                "steps": np.array([len(s.steps) for s in every], np.int64),
                "step_us": [float(np.median(s.step_duration)) / 1000 if len(s.steps) else None for s in every],
                "window_us": window,
                "busy_us": np.array(times("busy")),
                "idle_us": window - times("busy"),
                "compute_us": np.array(times("compute")),
                "communication_us": np.array(times("communication")),
                "exposed_us": np.array(times("exposed")),
                "collectives": np.array([len(s.exchanges) for s in every], np.int64),
                "waited_us": self.waiting[1] / 1000,
                "waited_for_us": table["waited_for_us"],
                "straggling": table["waited_for_us"] / np.maximum(window, 1e-3),
                "limit": [s.verdict.kind.value for s in every],
                "finding": [s.findings[0].slug if s.findings else "" for s in every],
                "truncated": np.array([s.truncated for s in every], np.bool_),
                "device": [s.device for s in every],
                "file": [Path(s.file).name for s in every],
            }
        )

    def collectives(self) -> Table:
        """One row per kind of collective, library and size of its group, of those that ranks have in common.

        `count` and the times are a rank's, on average: `time_us`; `exposed_us`, in which nothing was computed;
        `waiting_us`, the part of that spent on waiting for the last rank; the rest is transfer. The bandwidths
        (medians, GB/s) come from the shortest duration on any rank.
        """
        m = self.matched
        columns = (m.name.tolist(), m.library.tolist(), m.size.tolist())
        keys = sorted({(m.names[n], m.libraries[k], int(s)) for n, k, s in zip(*columns, strict=True)})
        shortest, waited = m.shortest, m.waited
        rows = []
        for kind, library, size in keys:
            mine = (m.name == m.names.index(kind)) & (m.size == size) & (m.library == m.libraries.index(library))
            each = np.isin(np.arange(len(mine)), m.firsts) & mine
            sizes, transfer = m.bytes[each], shortest[each]
            known = (sizes > 0) & (transfer > 0)
            speed = float(np.median(sizes[known] / transfer[known])) if known.any() else None
            part = max(1, len(np.unique(m.rank[mine])))
            factor = bus_factor(kind, size)
            rows.append(
                {
                    "name": kind,
                    "library": library,
                    "group_size": size,
                    "count": round(int(mine.sum()) / part, 1),
                    "median_bytes": int(np.median(sizes[sizes >= 0])) if (sizes >= 0).any() else None,
                    "time_us": float(m.duration[mine].sum()) / 1000 / part,
                    "exposed_us": float(m.exposed[mine].sum()) / 1000 / part,
                    "waiting_us": float(waited[mine].sum()) / 1000 / part,
                    "algorithm_gb_s": speed,
                    "bus_gb_s": None if speed is None or math.isnan(factor) else speed * factor,
                }
            )
        rows.sort(key=lambda row: -row["time_us"])
        return Table({name: [row[name] for row in rows] for name in COLLECTIVE_COLUMNS})

    def stragglers(self) -> Table:
        """One row per rank, the one that was waited for longest first.

        `last` of `of` collectives it took part in and that made ranks wait, it came to last; `waited_for_us` is how
        long the others waited for it, on average, collectives side by side counted once; in `most` of `of_steps` steps
        with waiting it was the one waited for longest. Only collectives count whose ranks are all there.
        """
        m, n = self.matched, len(self)
        waiting = self.waited_for
        last = m.last & waiting
        by_step = self.lost_by_step
        return Table(
            {
                "rank": np.array(self.numbers, np.int64),
                "last": np.bincount(m.rank[last], minlength=n),
                "of": np.bincount(m.rank[waiting], minlength=n),
                "waited_for_us": self.waiting[0] / 1000,
                "most": np.bincount(by_step.argmax(axis=1), minlength=n),
                "of_steps": np.full(n, len(by_step)),
            }
        ).sorted("waited_for_us")

    @cached_property
    def lost_by_step(self) -> Floats:
        """How long the other ranks waited, on average, for each rank in each step in which ranks waited; nanoseconds.

        One row per step, one column per rank.
        """
        m, last = self.matched, self.matched.last & self.waited_for
        others = np.bincount(m.instance, minlength=1)[m.instance] - 1
        lost = np.bincount(m.instance, weights=m.waited, minlength=1)[m.instance] / np.maximum(others, 1)
        steps, step = np.unique(m.step[last], return_inverse=True)
        found = np.zeros((len(steps), len(self)))
        np.add.at(found, (step, m.rank[last]), lost[last])
        return found

    @cached_property
    def saved(self) -> Floats:
        """How much earlier collectives would begin if each rank never came last by more than the next one; ns."""
        m, last = self.matched, self.matched.last & self.waited_for
        return np.minimum(np.bincount(m.rank[last], weights=m.saved[last], minlength=len(self)), self.waiting[0])

    @cached_property
    def compared(self) -> bool:
        """Whether half of the exposed communication, or more, is in collectives whose ranks are all there.

        The rest cannot be divided into waiting and transfer.
        """
        every = sum(int(s.exchanges.exposed.sum()) for s in self.summaries)
        return len(self) > 1 and 2 * int(self.matched.exposed[self.matched.complete].sum()) >= every

    @cached_property
    def waited_for(self) -> Flags:
        """Entries of `matched` whose collective is complete and made its ranks wait 10 us and 10% of it, or more."""
        return waited_for(self.matched)

    def __repr__(self) -> str:
        device = next((s.device for s in self.summaries if s.device), "CPU")
        ranks = counted(len(self), "rank")
        if not self.numbered:
            ranks = f"{counted(len(self), 'trace')}, taken for ranks although they have no numbers,"
        return f"<{type(self).__name__} {self.folder}: {ranks} on {device}; .ranks, .collectives(), .stragglers()>"

    @cached_property
    def waiting(self) -> tuple[Floats, Floats]:
        """How long ranks waited for each rank, on average over those that did, and how long each waited; nanoseconds.

        A rank waits at the beginning of a collective. Where several run side by side on a rank, that time counts once.
        """
        return waiting(self.matched, len(self))


def _ranks(summaries: Sequence[Summary]) -> list[int] | None:
    """The rank of each: from its trace, or from the file's name where only that differs; or None."""
    named = [s.named for s in summaries if s.named is not None]
    if len(set(named)) == len(summaries) > len({s.rank for s in summaries}):
        return named
    ranks = [s.named if s.rank is None else s.rank for s in summaries]
    known = [rank for rank in ranks if rank is not None]
    return known if len(known) == len(ranks) else None


def _one_each(summaries: Sequence[Summary], ranks: Sequence[int]) -> dict[int, int]:
    """The position of one trace for each rank: the one whose steps most other ranks also have."""
    common: dict[tuple[str, ...], int] = {}
    for summary in summaries:
        common[summary.steps] = common.get(summary.steps, 0) + 1
    best: dict[int, int] = {}
    for i, (summary, rank) in enumerate(zip(summaries, ranks, strict=True)):
        if rank not in best or common[summary.steps] > common[summaries[best[rank]].steps]:
            best[rank] = i
    return best
