"""Processor time of a thread: its own work, waiting for a processor that others used, or neither."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchwhy.processors import usable_processors

__all__ = ["ProcessorMark", "ProcessorTime", "waited_ns"]

SCHEDSTAT = Path("/proc/thread-self/schedstat")  # of the thread that reads it


@dataclass(frozen=True)
class ProcessorTime:
    """A stretch of one thread's time, and how busy the machine was at its end.

    Attributes:
        wall_us: how long it was, microseconds.
        cpu_us: how long of that the thread ran.
        waited_us: how long it could have run and no processor was free; None where the system does not show it.
        load: the load average of the last minute, including this program; None if the system does not provide it.
        cores: how many processors the program may use.
        threads: how many threads an operator of PyTorch may use.
        collecting_us: how long the thread ran in garbage collections that the recording labels; None where that is not
            measured.
    """

    wall_us: float
    cpu_us: float
    waited_us: float | None
    load: float | None
    cores: int
    threads: int | None = None
    collecting_us: float | None = None


class ProcessorMark:
    """Remembers where the clocks of this thread stand."""

    def __init__(self) -> None:
        """Read them."""
        self._thread = threading.get_ident()
        self._wall_ns, self._cpu_ns, self._waited_ns = time.perf_counter_ns(), time.thread_time_ns(), waited_ns()

    def since(self) -> ProcessorTime:
        """Return what they have counted. Called in another thread, it doesn't know how long this one waited."""
        torch: Any = sys.modules.get("torch")
        here = threading.get_ident() == self._thread
        waited = waited_ns() if here else None
        cpu_ns = time.thread_time_ns() if here else time.clock_gettime_ns(time.pthread_getcpuclockid(self._thread))
        known = waited is not None and self._waited_ns is not None
        return ProcessorTime(
            wall_us=(time.perf_counter_ns() - self._wall_ns) / 1000,
            cpu_us=(cpu_ns - self._cpu_ns) / 1000,
            waited_us=(waited - self._waited_ns) / 1000 if known else None,  # type: ignore[operator]
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            cores=usable_processors(),
            threads=torch.get_num_threads() if torch is not None else None,
        )


def waited_ns(thread: int | None = None) -> int | None:
    """How long a thread stood in a run queue; None without Linux's statistics of its scheduler.

    Args:
        thread: its native number; None for the thread that calls this.
    """
    try:
        statistics = SCHEDSTAT if thread is None else Path(f"/proc/self/task/{thread}/schedstat")
        return int(statistics.read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return None
