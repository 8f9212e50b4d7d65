"""The timelines of all ranks of a job as one Chrome trace, for Perfetto: `torchwhy merge`."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from torchwhy.errors import ArgumentError, TraceError
from torchwhy.ranks.job import Job
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.file.source import Chunks
from torchwhy.trace.file.writing import whole_file

__all__ = ["Clock", "Merged", "MergedRank", "clocks_of", "merge_ranks"]


ENOUGH: Final = 3
"""Collectives that two ranks must share for their clocks to be compared."""

NOTICEABLE_NS: Final = 10_000
"""Clocks that differ by less, or by less than the ends of collectives scatter, are left as they are."""

LONGEST: Final = 1 << 26
"""Characters of one event, above which the file is given up."""

ROOM: Final = 1000
"""Distance of the sort indices of two ranks: higher than the sort index of any process of a rank."""

_OF_PROCESSES: Final = ("process_name", "process_labels", "process_sort_index")
_FLOWS: Final = frozenset("stf")
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True)
class Clock:
    """The correction of one rank's times.

    Attributes:
        rank: its number.
        moved_us: to make shared collectives end at the same time as on the reference; 0 where its clock agrees.
        reference: the rank whose clock is the measure; None for that itself, and where nothing is shared.
        collectives: how many ends were compared.
        spread_us: how far those scatter: the distance between the quartiles of the differences.
    """

    rank: int
    moved_us: float = 0.0
    reference: int | None = None
    collectives: int = 0
    spread_us: float = 0.0


@dataclass(frozen=True)
class MergedRank:
    """One rank in the merged file."""

    rank: int
    file: str
    events: int
    clock: Clock


@dataclass(frozen=True)
class Merged:
    """The written file.

    Attributes:
        folder: of the job. output: the file.
        ranks: in order of their numbers.
    """

    folder: str
    output: str
    ranks: tuple[MergedRank, ...]


def clocks_of(job: Job) -> tuple[Clock, ...]:
    """Compare the ranks' clocks: a collective ends on all ranks together, except for some microseconds.

    A rank that shares no collectives with the first one is compared with one that does, and so on.
    """
    m, base = job.matched, np.array([summary.base_ns for summary in job.summaries], np.int64)
    ends = m.start + m.duration + base[m.rank] if len(job) else m.start
    found: dict[int, tuple[int, Clock]] = {}
    most, nearest = np.full(len(job), -1), np.zeros(len(job), np.int64)  # shared with any that is known, and with which
    new = 0
    while len(found) < len(job):
        if new == 0:
            found[new] = 0, Clock(job.numbers[new])
        else:
            known = int(nearest[new])
            one, other = _shared(m.instance, m.rank, known, new)
            away = ends[one] + found[known][0] - ends[other]
            moved = int(np.median(away))
            low, high = np.percentile(away, (25, 75))
            spread = float(high - low)
            moved = moved if abs(moved) > max(spread, NOTICEABLE_NS) else 0
            found[new] = moved, Clock(job.numbers[new], moved / 1000, job.numbers[known], int(most[new]), spread / 1000)
        has = np.zeros(int(m.instance.max(initial=-1)) + 1, np.bool_)
        has[m.instance[m.rank == new]] = True
        count = np.bincount(m.rank[has[m.instance]], minlength=len(job))
        better = (count > most) | ((count == most) & (new < nearest))
        most[better], nearest[better] = count[better], new
        most[list(found)] = -1
        new = int(most.argmax())
        if most[new] < ENOUGH:
            break
    return tuple(found[i][1] if i in found else Clock(rank) for i, rank in enumerate(job.numbers))


def _shared(instance: Int64, rank: Int64, one: int, other: int) -> tuple[Int64, Int64]:
    """Where the collectives that two ranks share stand among the entries of each."""
    first, second = (np.flatnonzero(rank == which) for which in (one, other))
    _, a, b = np.intersect1d(instance[first], instance[second], assume_unique=True, return_indices=True)
    return first[a], second[b]


def merge_ranks(job: Job, output: Path) -> Merged:
    """Write the events of all ranks into one file, with separate processes for each rank.

    Events are read and written one by one. The file appears whole or not at all.

    Args:
        job: whose ranks.
        output: the file; compressed where its name ends in .gz.

    Raises:
        ArgumentError: the output is one of the ranks' traces.
        TraceError: a trace cannot be read again.
        OSError: the output cannot be written.
    """
    for summary in job.summaries:
        if output.exists() and output.samefile(summary.file):
            raise ArgumentError(f"output must not be a trace of the job, got {output}")
    clocks = clocks_of(job)
    base = min((summary.base_ns for summary in job.summaries), default=0)
    merged = []
    with whole_file(output) as file:
        head = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}
        head["torchwhyMergedRanks"] = [asdict(clock) for clock in clocks]
        file.write(_ENCODER.encode(head)[:-1] + b',"traceEvents":[\n')
        first = True
        for position, (summary, clock) in enumerate(zip(job.summaries, clocks, strict=True)):
            shift = Decimal(summary.base_ns - base) / 1000 + Decimal(round(clock.moved_us * 1000)) / 1000
            rank = _Rank(clock.rank, position, len(job), shift)
            for event in rank.moved(_events(summary.file)):
                file.write((b"" if first else b",\n") + _ENCODER.encode(event))
                first = False
            merged.append(MergedRank(clock.rank, summary.file, rank.events, clock))
        file.write(b"\n]}\n")
    return Merged(job.folder, str(output), tuple(merged))


class _Rank:
    """Gives a rank's events its own processes, flows and clock."""

    def __init__(self, rank: int, position: int, ranks: int, shift_us: Decimal) -> None:
        self.rank, self.position, self.ranks, self.shift_us = rank, position, ranks, shift_us
        self.events = 0
        self._processes: dict[object, int] = {}
        self._names: dict[int, dict[str, Any]] = {}

    def moved(self, events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the events as they stand in the merged file, then the names of the rank's processes."""
        for event in events:
            pid = self._process(event.get("pid"))
            event["pid"] = pid
            if event.get("ph") == "M":
                if event.get("name") in _OF_PROCESSES:
                    self._names[pid][event["name"]] = event.get("args") or {}
                    continue
            else:
                self.events += 1
                if (time := _decimal(event.get("ts"))) is not None:
                    event["ts"] = time + self.shift_us
                if event.get("ph") in _FLOWS and isinstance(event.get("id"), int):
                    event["id"] = event["id"] * self.ranks + self.position  # no two ranks' flows have one id
            yield event
        for pid, metadata in self._names.items():
            yield from self._named(pid, metadata)

    def _process(self, pid: object) -> int:
        if pid not in self._processes:
            self._processes[pid] = number = self.position * ROOM + len(self._processes)
            self._names[number] = {}
        return self._processes[pid]

    def _named(self, pid: int, metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        name = str(metadata.get("process_name", {}).get("name", "")).strip()
        index = _decimal(metadata.get("process_sort_index", {}).get("sort_index"))
        place = min(int(index) if index is not None and index >= 0 else 0, ROOM - 1)
        values = {
            "process_name": {"name": f"rank {self.rank} {name}".strip()},
            "process_labels": metadata.get("process_labels", {}),
            "process_sort_index": {"sort_index": self.position * ROOM + place},
        }
        for what, args in values.items():
            if args:
                yield {"ph": "M", "name": what, "pid": pid, "tid": 0, "ts": 0, "args": args}


def _decimal(value: object) -> Decimal | None:
    """A number, or a number in quotes, as the files of some years have it."""
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, str):
        try:
            return Decimal(value)
        except ArithmeticError:
            return None
    return None


def _events(path: str) -> Iterator[dict[str, Any]]:
    """The events of a file one by one, times as exact as they are written.

    Raises:
        TraceError: it is not JSON with a list of events; damaged files cannot be merged.
    """
    with Chunks(path) as chunks:
        text = _Text(path, iter(chunks))
        if text.next() == "{":
            text.skip(1)
            while (character := text.next()) != "}":
                if character == ",":
                    text.skip(1)
                    continue
                key = text.value()
                if text.next() != ":":
                    text.fail()
                text.skip(1)
                if key == "traceEvents":
                    break
                text.next()
                text.value()
            else:
                text.fail("has no list of events")
        if text.next() != "[":
            text.fail("has no list of events")
        text.skip(1)
        while (character := text.next()) != "]":
            if character == ",":
                text.skip(1)
                continue
            event = text.value()
            if isinstance(event, dict) and event:
                yield event


class _Text:
    """A stream of characters from which JSON values are taken."""

    def __init__(self, name: str, chunks: Iterator[bytes]) -> None:
        self._name, self._chunks = name, chunks
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._text, self._place, self._final = "", 0, False
        self._scan = json.JSONDecoder(strict=False, parse_float=Decimal, parse_constant=_nothing).raw_decode

    def next(self) -> str:
        """The next character that isn't blank."""
        while True:
            while self._place < len(self._text):
                if not (character := self._text[self._place]).isspace():
                    return character
                self._place += 1
            if not self._grow():
                self.fail("ends too early")

    def skip(self, count: int) -> None:
        self._place += count

    def value(self) -> Any:
        """The value that begins here."""
        while True:
            try:
                value, end = self._scan(self._text, self._place)
            except ValueError:
                if len(self._text) - self._place > LONGEST or not self._grow():
                    self.fail()
                continue
            if end < len(self._text) or self._final or not self._grow():  # a number may go on in the next chunk
                self._place = end
                return value

    def fail(self, why: str = "is not JSON") -> Any:
        raise TraceError(f"{self._name} {why}: its events cannot be rewritten")

    def _grow(self) -> bool:
        chunk = next(self._chunks, b"")
        self._final = not chunk
        self._text = self._text[self._place :] + self._decode(chunk, self._final)
        self._place = 0
        return bool(chunk)


def _nothing(_: str) -> None:
    """NaN and Infinity are no JSON: viewers refuse them."""
