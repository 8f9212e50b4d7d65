"""On what a benchmark ran: figures mean nothing without it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import torch

from torchfx._ops import native
from torchfx.system import describe

__all__ = ["hardware", "watch_others"]

VERSIONS = ("torchfx", "torch", "numpy", "scipy")


def hardware(threads: int) -> dict[str, object]:
    """Return processor, cores, threads, instruction set, memory, GPU, system and versions."""
    facts = describe()
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": threads,
        "instruction_set": native.instruction_set(),
        "memory_gib": memory_gib(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **{name: facts[name] for name in VERSIONS}},
    }


def processor_name() -> str:
    """Return what the processor calls itself."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def memory_gib() -> float | None:
    """Return the machine's memory, or None where the system does not tell."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(size / 2**30, 1)


def watch_others() -> Callable[[], float | None]:
    """Return a function that says what share of all processor time since now went to other programs.

    It knows the time of child processes that have ended, and answers None where the system does not tell.
    """
    start, busy, own = time.monotonic(), busy_s(), own_s()

    def share() -> float | None:
        if busy is None or (now := busy_s()) is None:
            return None
        elapsed = (time.monotonic() - start) * (os.cpu_count() or 1)
        return round(min(1.0, max(0.0, (now - busy) - (own_s() - own)) / max(elapsed, 1e-9)), 3)

    return share


def busy_s() -> float | None:
    """Return the seconds that all processors together have worked since the machine started."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    user, nice, system, _, _, irq, softirq, *_ = map(int, path.read_text().splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_s() -> float:
    """Return the processor seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
