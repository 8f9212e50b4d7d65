"""Which call on the host put which work on the device: by the ids of both, never by arrows or by time alone."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Flags, Int32, Int64
from torchwhy.trace.meaning.kinds import GPU_WORK, Kind
from torchwhy.trace.meaning.runtime import COPY_CALL, FILL_CALL, GRAPH_LAUNCH, LAUNCH
from torchwhy.trace.model.events import Events

__all__ = ["Links"]

PUT_BY: Final = ((Kind.KERNEL, LAUNCH), (Kind.MEMCPY, COPY_CALL), (Kind.MEMSET, FILL_CALL))
"""The kind of work that each kind of call puts on a device."""

SAMPLED: Final = 50.0
"""Ids advance by this much from one recorded call to the next, and most calls were left out. Whole recordings have 1
to 11: the profiler doesn't record every call that has an id."""

IN_ORDER: Final = 0.9
"""A part of the calls whose id is higher than that of the call before, from which on ids show which call was first."""

FEWEST_CALLS: Final = 20
"""If there are fewer calls than this, nothing is said about how their ids advance."""


class Links:
    """Launches and the device work with the same correlation id.

    Where neither has one, they are matched by `External id`, the operator both belong to: calls and work of one kind,
    in their order. Such links are inferred.

    Attributes:
        work: rows of kernels, copies and fills, by start.
        launch: for each of `work` the row of the call that put it there, or -1.
        inferred: for each of `work` whether its launch was found by `External id`.
        maker: for each of `work` the call that shows which operator it belongs to: its launch, or the recorded launch
            of the same work where a graph was replayed (`Captured`); or -1.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self.work: Int32 = events.rows(*GPU_WORK)
        calls = events.rows(Kind.RUNTIME)
        ids = events.integers("correlation", calls)
        usable = _usable(ids)
        self._calls, self._ids = self._one_per_launch(calls[usable], ids[usable])
        self._repeated = bool((self._ids[1:] == self._ids[:-1]).any())
        self._by_operator = self._launch_by_operator(calls[~usable])
        self.launch: Int32 = self.of(self.work)
        self.inferred: Flags = self.launch >= 0
        self.inferred &= ~_usable(events.integers("correlation", self.work))
        self.maker: Int32 = self.maker_of(self.work)

    def of(self, rows: Int32) -> Int32:
        """The launching call of each row of device work, or -1."""
        found = self._launch_of(rows)
        if self._by_operator is not None:
            found = np.where(found < 0, self._by_operator[rows], found)
        return found

    def maker_of(self, rows: Int32) -> Int32:
        """The call that shows which operator each row of device work belongs to, or -1; see `maker`."""
        found, captured = self.of(rows), self._events.captured
        if captured is None or not len(captured.work):
            return found
        i = np.minimum(np.searchsorted(captured.work, rows), len(captured.work) - 1)
        return np.where(captured.work[i] == rows, captured.launch[i], found)

    def put_by(self, rows: Int32) -> Int32:
        """All device work put there by these calls, by start."""
        chosen = np.zeros(len(self._events) + 1, np.bool_)
        chosen[rows] = True
        chosen[-1] = False
        return self.work[chosen[self.launch]]

    @cached_property
    def launches(self) -> Int32:
        """Rows of the calls that launch kernels, graph launches included, by start."""
        return self._events.of(LAUNCH)

    @cached_property
    def graph_launches(self) -> Int32:
        """Rows of the calls that launch a whole CUDA or HIP graph, by start."""
        return self._events.of(GRAPH_LAUNCH)

    @cached_property
    def work_count(self) -> Int32:
        """How many pieces of device work each row put there."""
        found: Int32 = np.bincount(self.launch[self.launch >= 0], minlength=len(self._events)).astype(np.int32)
        return found

    @cached_property
    def stride(self) -> float:
        """By how much the correlation id advances from one recorded call to the next, on average; 0 of few calls.

        Samples are often short bursts, so the median says nothing. The one step in a hundred that is the largest is
        left out: between two recordings in one file ids go on. 0 too where ids don't advance with time.
        """
        steps = np.diff(self._ids)  # they are sorted
        steps = steps[steps > 0]
        if len(steps) < FEWEST_CALLS - 1 or not self._in_order:
            return 0.0
        usual = len(steps) - max(len(steps) // 100, 1)
        return float(np.partition(steps, usual)[:usual].mean())

    @property
    def sampled(self) -> bool:
        """Whether the file holds a sample of the calls only: their ids advance by hundreds."""
        return self.stride >= SAMPLED

    @cached_property
    def before_recording(self) -> Int32:
        """Rows of device work that was launched before recording began, by start; work without an id isn't among them.

        Its launch is missing, and it began before the first recorded call, or its correlation id is lower than that of
        every recorded call. Where ids don't advance with time: it ran before all work of its stream whose launch was
        recorded, since a stream keeps the order of launches.
        """
        events = self._events
        ids = events.integers("correlation", self.work)
        unknown = (self.launch < 0) & _usable(ids)
        calls = events.rows(Kind.RUNTIME)
        if not len(calls) or not unknown.any():
            return self.work[:0]
        start = events.ts[self.work]
        early: Flags = start < int(events.ts[calls].min())
        if self._in_order:
            early |= ids < int(self._ids[0])
        else:
            first = np.full(len(events.lanes), np.iinfo(np.int64).min, np.int64)
            linked = np.flatnonzero(self.launch >= 0)[::-1]
            first[events.lane[self.work[linked]]] = start[linked]
            early |= start < first[events.lane[self.work]]
        return self.work[unknown & early]

    @cached_property
    def _in_order(self) -> bool:
        """Whether correlation ids advance with time."""
        if len(self._ids) < 2:
            return False
        ids = self._ids[np.argsort(self._events.ts[self._calls], kind="stable")]
        return bool(np.count_nonzero(ids[1:] > ids[:-1]) >= IN_ORDER * (len(ids) - 1))

    @cached_property
    def unrecorded_graphs(self) -> Int32:
        """The launches of graphs that left nothing in the trace, neither work nor any other node."""
        graphs = self.graph_launches
        others = self._launch_of(self._events.rows(Kind.GRAPH_NODE))
        found: Int32 = graphs[(self.work_count[graphs] == 0) & ~np.isin(graphs, others)]
        return found

    def _one_per_launch(self, calls: Int32, ids: Int64) -> tuple[Int32, Int64]:
        """Sort calls by id, then by start; of calls inside each other with one id only the launch stays.

        A driver call inside a runtime call has its id. The same id further away is another launch: files of several
        processes merged into one have such.
        """
        order = np.argsort(ids, kind="stable")
        calls, ids = calls[order], ids[order]
        again = np.flatnonzero(ids[1:] == ids[:-1]) + 1
        if not len(again):
            return calls, ids
        events = self._events
        launches = events.are(LAUNCH, calls)
        keep = np.ones(len(calls), np.bool_)
        end, lane = events.end[calls], events.lane[calls]
        j = 0
        for i in again.tolist():  # pairs are rare, except for files written with driver calls recorded
            j = i - 1 if keep[i - 1] else j
            if events.ts[calls[i]] < end[j] and lane[i] == lane[j]:
                keep[j if launches[i] and not launches[j] else i] = False
        return calls[keep], ids[keep]

    def _launch_by_operator(self, calls: Int32) -> Int32 | None:
        """For each event the call without correlation id that put it on the device, or -1; None without such calls.

        Of one operator (`External id`) the first call belongs to the first work of its kind, and so on; if their
        numbers differ, all work belongs to the only call, or to none.
        """
        events = self._events
        operators = events.integers("External id", calls)
        calls, operators = calls[_usable(operators)], operators[_usable(operators)]
        if not len(calls):
            return None
        found = np.full(len(events), -1, np.int32)
        for kind, meaning in PUT_BY:
            work = events.rows(kind)
            of_work = events.integers("External id", work)
            free = _usable(of_work) & ~_usable(events.integers("correlation", work))
            work, of_work = work[free], of_work[free]
            mine = events.are(meaning, calls)
            order, of_order = np.argsort(operators[mine], kind="stable"), np.argsort(of_work, kind="stable")
            putting, ids = calls[mine][order], operators[mine][order]
            work, of_work = work[of_order], of_work[of_order]
            low, high = np.searchsorted(ids, of_work), np.searchsorted(ids, of_work, "right")
            begin = np.searchsorted(of_work, of_work)
            several = high - low == np.searchsorted(of_work, of_work, "right") - begin
            place = low + np.where(several, np.arange(len(work)) - begin, 0)
            known = np.flatnonzero((high > low) & (several | (high - low == 1)))
            launch = putting[place[known]]
            before = events.ts[launch] <= events.ts[work[known]]
            found[work[known[before]]] = launch[before]
        return found

    def _launch_of(self, rows: Int32) -> Int32:
        result = np.full(len(rows), -1, np.int32)
        if not len(self._ids):
            return result
        ids: Int64 = self._events.integers("correlation", rows)
        i = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        there = self._ids[i] == ids
        result[there] = self._calls[i[there]]
        if self._repeated:
            several = np.flatnonzero(there & (np.searchsorted(self._ids, ids, "right") - i > 1))
            result[several] = self._latest_before(ids[several], self._events.ts[rows[several]], result[several])
        return result

    def _latest_before(self, ids: Int64, times: Int64, otherwise: Int32) -> Int32:
        """For device work whose id several launches have: the last of them that began before it."""
        events, n = self._events, len(self._ids)
        order = np.lexsort(
            (
                np.repeat([0, 1], [n, len(ids)]),
                np.concatenate((events.ts[self._calls], times)),
                np.concatenate((self._ids, ids)),
            )
        )
        call = np.where(order < n, np.arange(len(order)), -1)
        call = np.maximum.accumulate(call)  # the last call at or before each place
        found = otherwise.copy()
        work = np.flatnonzero((order >= n) & (call >= 0))
        before = order[call[work]]
        same = self._ids[before] == ids[order[work] - n]
        found[order[work[same]] - n] = self._calls[before[same]]
        return found


def _usable(ids: Int64) -> Flags:
    """Whether each id says anything: exporters write 0 for none."""
    found: Flags = (ids != ABSENT) & (ids != 0)
    return found
