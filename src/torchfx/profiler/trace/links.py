"""Which call on the host put which work on the device: by correlation ids, never by arrows or by time."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from torchfx.profiler.trace.columns import ABSENT, Int32, Int64
from torchfx.profiler.trace.events import Events
from torchfx.profiler.trace.kinds import GPU_WORK, Kind

__all__ = ["GRAPH_LAUNCH", "LAUNCH", "Links"]

LAUNCH: Final = r"(?i).*(launch.*kernel|kernel.*launch|graphlaunch)|.*LaunchKernel|hipLaunchByPtr"
"""Runtime calls that put kernels on a device: cudaLaunchKernel(ExC), cuLaunchKernelEx, hipModuleLaunchKernel,
hipExtModuleLaunchKernel, urEnqueueKernelLaunch, cudaGraphLaunch, ..."""

GRAPH_LAUNCH: Final = r"(?i).*graphlaunch"


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
        calls, ids = calls[usable], ids[usable]
        # Two calls with one id (a driver call inside a runtime call): the launch is the one that says so.
        rank = events.names_matching(LAUNCH)[events.name[calls]]
        order = np.lexsort((~rank, ids))
        self._calls, self._ids = calls[order], ids[order]
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
        return self._events.find(LAUNCH, Kind.RUNTIME)

    @cached_property
    def graph_launches(self) -> Int32:
        """Rows of the calls that launch a whole CUDA or HIP graph, by start."""
        return self._events.find(GRAPH_LAUNCH, Kind.RUNTIME)

    @cached_property
    def work_count(self) -> Int32:
        """How many pieces of device work each row put there."""
        found: Int32 = np.bincount(self.launch[self.launch >= 0], minlength=len(self._events)).astype(np.int32)
        return found

    def _launch_of(self, rows: Int32) -> Int32:
        result = np.full(len(rows), -1, np.int32)
        if not len(self._ids):
            return result
        ids: Int64 = self._events.integers("correlation", rows)
        i = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        there = self._ids[i] == ids
        result[there] = self._calls[i[there]]
        return result
