"""Which call on the host put which work on the device: by correlation ids, never by arrows or by time."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from torchfx.profiler.trace.file.columns import ABSENT, Int32, Int64
from torchfx.profiler.trace.meaning.kinds import GPU_WORK, Kind
from torchfx.profiler.trace.meaning.runtime import GRAPH_LAUNCH, LAUNCH
from torchfx.profiler.trace.model.events import Events

__all__ = ["Links"]


class Links:
    """Launches and the device work with the same correlation id.

    Attributes:
        work: rows of kernels, copies and fills, by start.
        launch: for each of `work` the row of the call that put it there, or -1.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self.work: Int32 = events.rows(*GPU_WORK)
        calls = events.rows(Kind.RUNTIME)
        ids = events.integers("correlation", calls)
        usable = (ids != ABSENT) & (ids != 0)
        self._calls, self._ids = self._one_per_launch(calls[usable], ids[usable])
        self._repeated = bool((self._ids[1:] == self._ids[:-1]).any())
        self.launch: Int32 = self._launch_of(self.work)

    def of(self, rows: Int32) -> Int32:
        """The launching call of each row of device work, or -1."""
        return self._launch_of(rows)

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
    def unrecorded_graphs(self) -> Int32:
        """Of the launches of graphs those that left nothing in the trace, neither work nor any other node."""
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
        for i in again.tolist():  # pairs are rare, but for files written with driver calls recorded
            j = i - 1 if keep[i - 1] else j
            if events.ts[calls[i]] < end[j] and lane[i] == lane[j]:
                keep[j if launches[i] and not launches[j] else i] = False
        return calls[keep], ids[keep]

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
