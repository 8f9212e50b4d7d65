"""How much of the processor others used while we measured."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CpuTimes", "Load", "load_between", "read_cpu_times"]

SHORTEST_S = 0.2  # the kernel counts in ticks of 10 ms; below this the shares are guesses
_OWN_SLACK = 0.9  # of all processors in use: from there on, some thread waits now and then
_OTHERS = 0.25  # processors that others must use before they are worth a word


@dataclass(frozen=True)
class CpuTimes:
    """Processor seconds since boot: of all processors, of those idle, and of this process."""

    total_s: float
    idle_s: float
    own_s: float


@dataclass(frozen=True)
class Load:
    """Processors in use, on average, by this process and by others, out of `cpus`."""

    own: float
    others: float
    cpus: int

    @property
    def busy(self) -> bool:
        """Whether others took processors that this process could have used.

        >>> Load(own=1.0, others=0.9, cpus=2).busy, Load(own=1.0, others=40.0, cpus=64).busy
        (True, False)
        """
        return self.others >= _OTHERS and self.own + self.others >= _OWN_SLACK * self.cpus


def read_cpu_times() -> CpuTimes | None:
    """Return the counters of /proc/stat, or None on systems other than Linux."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    ticks = [int(field) for field in fields]  # user nice system idle iowait irq softirq steal
    per_s = os.sysconf("SC_CLK_TCK")
    return CpuTimes(sum(ticks) / per_s, (ticks[3] + ticks[4]) / per_s, sum(os.times()[:4]))


def load_between(before: CpuTimes | None, after: CpuTimes | None, cpus: int | None = None) -> Load | None:
    """Return the mean load between two readings, or None where it cannot be known: no counters, too short.

    >>> load_between(CpuTimes(0, 0, 0), CpuTimes(20, 5, 10), cpus=2)
    Load(own=1.0, others=0.5, cpus=2)
    """
    cpus = cpus or os.cpu_count()
    if before is None or after is None or not cpus:
        return None
    wall_s = (after.total_s - before.total_s) / cpus
    if wall_s < SHORTEST_S:
        return None
    own = (after.own_s - before.own_s) / wall_s
    used = cpus - (after.idle_s - before.idle_s) / wall_s
    return Load(own, max(0.0, used - own), cpus)
