"""A job: the traces of all ranks of one program, summed up and compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from torchfx.errors import TraceError
from torchfx.profiler.ranks.folder import traces_in
from torchfx.profiler.ranks.matching import Matched, match
from torchfx.profiler.ranks.merging import merged
from torchfx.profiler.ranks.reading import read_all
from torchfx.profiler.ranks.summary import Summary, Thresholds
from torchfx.profiler.ranks.tables import collectives_of_job, ranks_of_job, stragglers_of_job
from torchfx.profiler.ranks.waiting import waited_for, waiting
from torchfx.profiler.rules.catalogue import all_rules, in_a_line, matching
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.trace.derived.collectives import MOST_RANKS
from torchfx.profiler.trace.file.columns import Flags, Floats
from torchfx.profiler.trace.tables.table import Table

__all__ = ["Job", "load_job"]

ALONE: Final = ("single-rank-caution",)
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
        failed: rules that broke off, by code: the error in a line. Those on jobs are there after `diagnose`.
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
        return ranks_of_job(self)

    def collectives(self) -> Table:
        """One row per kind of collective and size of its group.

        `count` and `time_us` are a rank's, on average; `waiting_us` is the part of the time spent on waiting for the
        last rank without computing. The bandwidths (medians, GB/s) come from the shortest duration on any rank.
        """
        return collectives_of_job(self)

    def stragglers(self) -> Table:
        """One row per rank, the one that was waited for longest first.

        `last` of `of` collectives it took part in and that made ranks wait, it came to last; `waited_for_us` is how
        long the others waited for it, on average, collectives side by side counted once; in `most` of `of_steps` steps
        with waiting it was the one waited for longest. Only collectives count whose ranks are all there.
        """
        return stragglers_of_job(self)

    @cached_property
    def waited_for(self) -> Flags:
        """Entries of `matched` whose collective is complete and made its ranks wait 10 us and 10% of it, or more."""
        return waited_for(self.matched)

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
                looking = rule.check(self, given.get(rule.slug, given.get(rule.code.lower(), {})))
                try:
                    findings += list(looking)
                except Exception as error:  # noqa: BLE001
                    # As with rules on traces: one that fails, maybe a plugin's, doesn't silence the others.
                    self.failed[rule.code] = in_a_line(error)
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
    def waiting(self) -> tuple[Floats, Floats]:
        """How long ranks waited for each rank, on average over those that did, and how long each waited; nanoseconds.

        A rank waits at the beginning of a collective. Where several run side by side on a rank, that time counts once.
        """
        return waiting(self.matched, len(self))


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
