"""The events of a trace as columns with one meaning: kinds instead of categories, lanes instead of pids and tids."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from torchfx.profiler.trace.columns import ABSENT, Argument, Columns, Int32, Int64
from torchfx.profiler.trace.kinds import Kind, kind_of

__all__ = ["DAY", "Damage", "Events", "Lane"]

DAY: Final = 24 * 3600 * 10**9
"""Longer than any event of a trace, nanoseconds: such a duration is an exporter's mistake."""

# Spellings of one argument over the years.
_SYNONYMS: Final = {"external id": "External id", "Input dims": "Input Dims"}


@dataclass(frozen=True)
class Lane:
    """A row of the timeline: a thread of the host, or a stream of a device."""

    pid: str
    tid: str
    label: str
    """The thread's name where the file tells it, such as "thread 123 (python)" or "stream 7"."""


@dataclass
class Damage:
    """Events whose times cannot be true; they take no part in anything."""

    without_time: int = 0
    negative: int = 0
    absurd: int = 0
    zero: int = 0
    """GPU work that is said to begin at time 0, while everything else doesn't."""


class Events:
    """One row per event of the file, in file order; a "row" is an index into these columns.

    Attributes:
        ts, dur, end: nanoseconds as in the file (relative to its base time where it has one).
        kind: a `Kind` per row.
        name: index into `texts` per row.
        lane: index into `lanes` per row.
        offset: where the event begins in the decompressed file, bytes.
        texts: every distinct text of the file.
        lanes: threads and streams.
        damage: events left out because of their times.
    """

    def __init__(self, columns: Columns) -> None:
        self.texts = columns.texts
        self.ts, self.name, self.offset = columns.ts, columns.name, columns.offset
        self.flow, self.phase = columns.flow, columns.phase
        self.arguments = _unified(columns.arguments)
        self.kind = _kinds(columns)
        self.dur = np.where(columns.dur == ABSENT, 0, columns.dur)
        self.damage = self._drop_damaged()
        self.end: Int64 = self.ts + self.dur
        self.lane, self.lanes = _lanes(columns, self.texts)

    def __len__(self) -> int:
        return len(self.ts)

    def named(self, row: int) -> str:
        """Return the name of one row."""
        i = int(self.name[row])
        return self.texts[i] if i >= 0 else ""

    def rows(self, *kinds: Kind) -> Int32:
        """Rows of these kinds by start; of equal starts the longer first, so that parents precede children."""
        return self._by_kind.setdefault(kinds, self._sorted(kinds))

    def find(self, pattern: str, *kinds: Kind) -> Int32:
        """Rows of these kinds whose name matches a regular expression from its beginning, by start."""
        rows = self.rows(*kinds)
        wanted = self.names_matching(pattern)
        return rows[wanted[self.name[rows]]]

    def names_matching(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Whether each text matches a regular expression from its beginning; one more entry for "no name"."""
        if pattern not in self._matches:
            matches = re.compile(pattern).match
            found = np.zeros(len(self.texts) + 1, np.bool_)
            for i in self._names:
                found[i] = matches(self.texts[i]) is not None
            self._matches[pattern] = found
        return self._matches[pattern]

    def integers(self, key: str, rows: npt.ArrayLike) -> Int64:
        """Return an integer argument of each row; `ABSENT` where it has none."""
        return self._lookup(key, np.asarray(rows), ABSENT, np.int64)

    def floats(self, key: str, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return a number of each row; NaN where it has none."""
        found: npt.NDArray[np.float64] = self._lookup(key, np.asarray(rows), np.nan, np.float64)
        return found

    def text_ids(self, key: str, rows: npt.ArrayLike) -> Int32:
        """Return a textual argument of each row as an index into `texts`; -1 where it has none."""
        found: Int32 = self._lookup(key, np.asarray(rows), -1, np.int32)
        return found

    def text(self, key: str, row: int) -> str | None:
        """Return a textual argument of one row, or None."""
        i = int(self.text_ids(key, [row])[0])
        return self.texts[i] if i >= 0 else None

    def has(self, key: str) -> bool:
        """Whether any event has this argument."""
        return key in self.arguments and len(self.arguments[key].rows) > 0

    def _lookup(self, key: str, rows: npt.NDArray[np.integer], absent: float, dtype: type) -> npt.NDArray:  # type: ignore[type-arg]
        result = np.full(len(rows), absent, dtype)
        argument = self.arguments.get(key)
        if argument is None or not len(argument.rows):
            return result
        i = np.minimum(np.searchsorted(argument.rows, rows), len(argument.rows) - 1)
        there = argument.rows[i] == rows
        result[there] = argument.values[i[there]]
        return result

    def _sorted(self, kinds: tuple[Kind, ...]) -> Int32:
        chosen = np.zeros(max(Kind) + 1, np.bool_)
        chosen[list(kinds)] = True
        rows = np.flatnonzero(chosen[self.kind]).astype(np.int32)
        found: Int32 = rows[np.lexsort((-self.dur[rows], self.ts[rows]))]
        return found

    def _drop_damaged(self) -> Damage:
        real = self.kind != Kind.OTHER
        lost = real & (self.ts == ABSENT)
        negative = real & (self.dur < 0)
        absurd = real & (self.dur > DAY)
        work = np.isin(self.kind, (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET))
        zero = work & (self.ts == 0)
        if zero.any() and np.count_nonzero(real & (self.ts == 0)) == np.count_nonzero(real):
            zero[:] = False
        self.dur[negative] = 0
        self.kind[lost | absurd | zero] = Kind.OTHER
        return Damage(*(int(np.count_nonzero(bad)) for bad in (lost, negative, absurd, zero)))

    @cached_property
    def _by_kind(self) -> dict[tuple[Kind, ...], Int32]:
        return {}

    @cached_property
    def _matches(self) -> dict[str, npt.NDArray[np.bool_]]:
        return {}

    @cached_property
    def _names(self) -> list[int]:
        """Texts that are names of events: few, where arguments bring many more texts."""
        return [int(i) for i in np.unique(self.name[self.kind != Kind.OTHER]) if i >= 0]


def _unified(arguments: dict[str, Argument]) -> dict[str, Argument]:
    found = dict(arguments)
    for old, new in _SYNONYMS.items():
        if old in found:
            first, second = found.get(new), found.pop(old)
            found[new] = second if first is None or not len(first.rows) else _merged(first, second)
    return found


def _merged(a: Argument, b: Argument) -> Argument:
    rows, values = np.concatenate((a.rows, b.rows)), np.concatenate((a.values, b.values))
    order = np.argsort(rows, kind="stable")
    return Argument(rows[order], values[order])


def _kinds(columns: Columns) -> npt.NDArray[np.uint8]:
    kind = np.full(len(columns), Kind.OTHER, np.uint8)
    complete = np.flatnonzero((columns.phase == ord("X")) & (columns.category >= 0))
    pairs = columns.category[complete].astype(np.int64) << 32 | (columns.name[complete].astype(np.int64) & 0xFFFFFFFF)
    distinct, which = np.unique(pairs, return_inverse=True)
    texts = columns.texts
    kinds = [kind_of(texts[pair >> 32], _text(texts, pair & 0xFFFFFFFF)) for pair in distinct.tolist()]
    kind[complete] = np.array(kinds, np.uint8)[which] if kinds else Kind.OTHER
    memory = [i for i, text in enumerate(texts) if text == "[memory]"]
    if memory:  # an instant or, from the Python exporter, a complete event; the phase doesn't matter
        kind[columns.name == memory[0]] = Kind.MEMORY
    return kind


def _text(texts: list[str], i: int) -> str:
    return texts[i] if i < len(texts) else ""


def _lanes(columns: Columns, texts: list[str]) -> tuple[Int32, list[Lane]]:
    pairs = columns.pid.astype(np.int64) << 32 | (columns.tid.astype(np.int64) & 0xFFFFFFFF)
    distinct, which = np.unique(pairs, return_inverse=True)
    labels: dict[int, str] = {}
    named = columns.arguments.get("name")
    if named is not None:
        for row, value in zip(named.rows.tolist(), named.values.tolist(), strict=True):
            if columns.phase[row] == ord("M") and _text(texts, int(columns.name[row]) & 0xFFFFFFFF) == "thread_name":
                labels[int(which[row])] = texts[int(value)].strip()
    lanes = []
    for i, pair in enumerate(distinct.tolist()):
        pid, tid = _text(texts, pair >> 32 if pair >= 0 else -1 & 0xFFFFFFFF), _text(texts, pair & 0xFFFFFFFF)
        lanes.append(Lane(pid, tid, labels.get(i, tid if not tid.isdigit() else f"thread {tid}")))
    return which.astype(np.int32).reshape(-1), lanes


def parse_list(text: str | None) -> list[object]:
    """Read an argument such as Input Dims; what is no list is an empty one."""
    if not text:
        return []
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) else []
