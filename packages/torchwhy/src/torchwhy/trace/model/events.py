"""The events of a trace as columns with one meaning: kinds instead of categories, lanes instead of pids and tids."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import ABSENT, Argument, Columns, Int32, Int64, distinct
from torchwhy.trace.meaning.frames import without_line
from torchwhy.trace.meaning.kinds import Kind, Meaning, kinds_of
from torchwhy.trace.meaning.names import Names
from torchwhy.trace.model.captured import Captured
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.lanes import Lane, lanes_of

__all__ = ["DAY", "Damage", "Events", "Lane", "parse_list"]

DAY: Final = 24 * 3600 * 10**9
"""Longer than any event of a trace, nanoseconds: such a duration is an exporter's mistake."""

BEGINNING_NS: Final = 1_000_000
"""The profiler notes the frames that are open when it begins one right after another."""

# Who is around whom where times are equal: lower is further out.
_RANK: Final = np.full(max(Kind) + 1, 4, np.uint8)
_RANK[[Kind.PYTHON, Kind.ANNOTATION, Kind.OPERATOR, Kind.RUNTIME]] = (0, 1, 2, 3)

# Spellings of one argument over the years.
_SYNONYMS: Final = {"external id": "External id", "Input dims": "Input Dims"}


@dataclass
class Damage:
    """Events whose times cannot be true; they take no part in anything."""

    without_time: int = 0
    negative: int = 0
    absurd: int = 0
    zero: int = 0
    """GPU work without a time: said to take nothing at 0, or to begin at 0 while all else is far off."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.without_time + self.negative + self.absurd + self.zero


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
        captured: where rows were added that show who made the work of replayed graphs: which; else None.
        recorded: how many rows the trace itself has; those from there on are of `captured`.
    """

    def __init__(self, columns: Columns, captured: Captured | None = None) -> None:
        self.captured = captured
        self.recorded = len(columns) if captured is None else captured.first
        self.texts = columns.texts
        self.ts, self.name, self.offset = columns.ts, columns.name, columns.offset
        self.flow, self.phase = columns.flow, columns.phase
        self.arguments = _unified(columns.arguments)
        self.kind = kinds_of(columns)
        self.dur: Int64 = np.where(columns.dur == ABSENT, np.int64(0), columns.dur)
        self.damage = self._drop_damaged()
        self.end: Int64 = self.ts + self.dur
        self.lane, self.lanes = lanes_of(columns)
        self._forget_lines()

    def __len__(self) -> int:
        return len(self.ts)

    def named(self, row: int) -> str:
        """Return the name of one row."""
        i = int(self.name[row])
        return self.texts[i] if i >= 0 else ""

    def rows(self, *kinds: Kind) -> Int32:
        """Rows of these kinds by start, parents before children; without those of `captured`.

        Of equal starts the longer comes first; of equal times frames, annotations, operators, runtime calls, in this
        order, since that is who calls whom.
        """
        there = tuple(kind for kind in sorted(set(kinds)) if self.count_by_kind[kind])
        if there not in self._by_kind:
            self._by_kind[there] = self._sorted(there)
        return self._by_kind[there]

    @cached_property
    def count_by_kind(self) -> npt.NDArray[np.intp]:
        """How many rows of each `Kind` the trace has, without those of `captured`."""
        return np.bincount(self.kind[: self.recorded], minlength=max(Kind) + 1)

    def borrowed(self, *kinds: Kind) -> Int32:
        """Rows of `captured` of these kinds: they take no time, and were made for the work of replayed graphs."""
        found = np.flatnonzero(np.isin(self.kind[self.recorded :], kinds)) + self.recorded
        return found.astype(np.int32)

    def times(self, rows: Int32) -> Int64:
        """How often each row took place: once; those of `captured` as often as graphs were replayed in their stead."""
        found = np.ones(len(rows), np.int64)
        if self.captured is not None:
            beyond = rows >= self.recorded
            found[beyond] = self.captured.times[rows[beyond] - self.recorded]
        return found

    def of(self, meaning: Meaning) -> Int32:
        """Rows of the events that mean this, by start."""
        return self._find(meaning.pattern, *meaning.kinds)

    def are(self, meaning: Meaning, rows: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether each of these rows means this."""
        chosen = np.asarray(rows, np.int32)
        found: npt.NDArray[np.bool_] = self._names_matching(meaning.pattern)[self.name[chosen]]
        return found & _among(meaning.kinds)[self.kind[chosen]]

    def any_of(self, meaning: Meaning) -> bool:
        """Whether any event means this."""
        return len(self.of(meaning)) > 0

    def _find(self, pattern: str, *kinds: Kind) -> Int32:
        """Rows of these kinds whose name matches a regular expression from its beginning, by start."""
        wanted = self._names_matching(pattern)
        if not wanted.any():  # most meanings occur in few traces, and looking at every row takes time
            return np.empty(0, np.int32)
        rows = self.rows(*kinds)
        found: Int32 = rows[wanted[self.name[rows]]]
        return found

    def _names_matching(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Whether each text matches a regular expression from its beginning; one more entry for "no name"."""
        if pattern not in self._matches:
            found = np.zeros(len(self.texts) + 1, np.bool_)
            found[self._names.matching(pattern)] = True
            self._matches[pattern] = found
        return self._matches[pattern]

    def times_of(self, rows: npt.ArrayLike) -> Intervals:
        """When these rows take place: the union of their times."""
        chosen = np.asarray(rows, np.int32)
        return Intervals.union(self.ts[chosen], self.end[chosen])

    def covered(self, rows: npt.ArrayLike, by: Intervals) -> Int64:
        """How much of each row's time some stretches cover, nanoseconds."""
        chosen = np.asarray(rows, np.int32)
        return by.overlap(self.ts[chosen], self.end[chosen])

    def begin_in(self, rows: Int32, start: int, end: int) -> npt.NDArray[np.bool_]:
        """Which rows begin in [start, end)."""
        found: npt.NDArray[np.bool_] = (self.ts[rows] >= start) & (self.ts[rows] < end)
        return found

    def integers(self, key: str, rows: npt.ArrayLike) -> Int64:
        """Return an integer argument of each row; `ABSENT` without one."""
        found: Int64 = self._lookup(key, rows, ABSENT, np.int64)
        return found

    def floats(self, key: str, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return a number of each row; NaN without one."""
        found: npt.NDArray[np.float64] = self._lookup(key, rows, np.nan, np.float64)
        return found

    def text_ids(self, key: str, rows: npt.ArrayLike) -> Int32:
        """Return a textual argument of each row as an index into `texts`; -1 without one."""
        found: Int32 = self._lookup(key, rows, -1, np.int32)
        return found

    def text(self, key: str, row: int) -> str | None:
        """Return a textual argument of one row, or None."""
        i = int(self.text_ids(key, [row])[0])
        return self.texts[i] if i >= 0 else None

    def has(self, key: str) -> bool:
        """Whether any event has this argument."""
        return key in self.arguments and len(self.arguments[key].rows) > 0

    def _lookup(self, key: str, wanted: npt.ArrayLike, absent: float, dtype: type) -> npt.NDArray[Any]:
        rows = np.asarray(wanted, np.int32)  # as the argument's: of two types NumPy would convert all rows at each call
        result: npt.NDArray[Any] = np.full(len(rows), absent, dtype)
        argument = self.arguments.get(key)
        if argument is None or not len(argument.rows):
            return result
        i = np.minimum(np.searchsorted(argument.rows, rows), len(argument.rows) - 1)
        there = argument.rows[i] == rows
        result[there] = argument.values[i[there]]
        return result

    def _sorted(self, kinds: tuple[Kind, ...]) -> Int32:
        rows = np.flatnonzero(_among(kinds)[self.kind[: self.recorded]]).astype(np.int32)
        rows = rows[np.argsort(self.ts[rows], kind="stable")]
        times = self.ts[rows]
        tied = np.zeros(len(rows) + 1, np.bool_)
        tied[1:-1] = times[1:] == times[:-1]
        among = np.flatnonzero(tied[1:] | tied[:-1])  # few: sorting those alone by all keys is cheaper
        if len(among):
            group = rows[among]
            rows[among] = group[np.lexsort((_RANK[self.kind[group]], -self.dur[group], times[among]))]
        return rows

    def _forget_lines(self) -> None:
        """Take the line off the program's frames that were open when recording began: it is that of this moment.

        They are the first of their thread, each inside the one before, and all begin with the recording.
        """
        if not self.has("Python id"):  # other exporters note no frames but those that begin
            return
        numbered = np.zeros(len(self), np.bool_)
        numbered[self.arguments["Python id"].rows] = True
        rows = self.rows(Kind.PYTHON)
        rows = rows[numbered[rows]]
        if not len(rows):
            return
        early = rows[: int(np.searchsorted(self.ts[rows], self.ts[rows[0]] + BEGINNING_NS))]
        self.texts, self.name = list(self.texts), self.name.copy()
        known: dict[str, int] = {}
        for lane in np.unique(self.lane[early]).tolist():
            mine = early[self.lane[early] == lane]
            for before, row in zip([mine[0], *mine[:-1]], mine, strict=True):
                if self.end[row] > self.end[before]:
                    break
                name = without_line(self.named(int(row)))
                if name != self.named(int(row)):
                    if name not in known:
                        known[name] = len(self.texts)
                        self.texts.append(name)
                    self.name[row] = known[name]

    def _drop_damaged(self) -> Damage:
        real = self.kind != Kind.OTHER
        times, lengths = self.ts[real], self.dur[real]
        if not len(times) or (
            times.min() > 0 and times.max() - times.min() <= DAY and lengths.min() >= 0 and lengths.max() <= DAY
        ):
            return Damage()  # as almost always
        lost = real & (self.ts == ABSENT)
        negative = real & (self.dur < 0)
        absurd = real & (self.dur > DAY)
        zero = np.zeros(len(real), np.bool_)
        timed = np.flatnonzero(real & ~lost)
        if len(timed):
            # Almost always all are near the first; only where they aren't the middle has to be found.
            middle = int(self.ts[timed[0]])
            if int(self.ts[timed].max()) - middle > DAY or middle - int(self.ts[timed].min()) > DAY:
                middle = int(np.partition(self.ts[timed], len(timed) // 2)[len(timed) // 2])
            far = (self.ts < middle - DAY) | (self.ts > middle + DAY)
            work = (self.kind >= Kind.KERNEL) & (self.kind <= Kind.MEMSET)
            zero = work & (self.ts == 0) & (far | (self.dur == 0))
            if np.count_nonzero(zero) == np.count_nonzero(work & real) and not far.any():
                zero[:] = False  # a trace that begins at 0 and takes no time
            absurd |= real & far & ~lost & ~zero
        self.dur[negative | absurd | lost] = 0
        self.kind[lost | absurd | zero] = Kind.OTHER
        return Damage(*(int(np.count_nonzero(bad)) for bad in (lost, negative, absurd, zero)))

    @cached_property
    def _by_kind(self) -> dict[tuple[Kind, ...], Int32]:
        return {}

    @cached_property
    def _matches(self) -> dict[str, npt.NDArray[np.bool_]]:
        return {}

    @cached_property
    def _names(self) -> Names:
        """Texts that are names of events: few, where arguments bring many more texts."""
        return Names(self.texts, distinct(self.name[self.kind != Kind.OTHER], len(self.texts)).tolist())


@cache
def _among(kinds: tuple[Kind, ...]) -> npt.NDArray[np.bool_]:
    """Whether each kind is one of some."""
    found = np.zeros(max(Kind) + 1, np.bool_)
    found[list(kinds)] = True
    return found


def _unified(arguments: dict[str, Argument]) -> dict[str, Argument]:
    found = dict(arguments)
    for old, new in _SYNONYMS.items():
        if old in found:
            first, second = found.get(new), found.pop(old)
            found[new] = second if first is None or not len(first.rows) else _merged(first, second)
    return found


def _merged(a: Argument, b: Argument) -> Argument:
    rows: Int32 = np.concatenate((a.rows, b.rows))
    values: Int64 = np.concatenate((a.values, b.values)).astype(a.values.dtype)
    order = np.argsort(rows, kind="stable")
    return Argument(rows[order], values[order])


def parse_list(text: str | None) -> list[object]:
    """Read an argument such as Input Dims; what is no list is an empty one."""
    if not text:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # the scanner keeps what a file has, however deep
        return []
    return found if isinstance(found, list) else []
