"""On what a benchmark ran: figures mean nothing without it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable

import torch

from torchfx._ops import native
from torchfx.system import describe
from torchwhy.capture import environment
from torchwhy.timing.machine import load_between, read_cpu_times

__all__ = ["hardware", "watch_others"]

VERSIONS = ("torchfx", "torch", "numpy", "scipy")


def hardware(threads: int) -> dict[str, object]:
    """Return processor, cores, threads, instruction set, memory, GPU, system and versions."""
    machine = environment.describe()
    facts = describe()
    return {
        "processor": machine["cpu"]["name"],
        "cores": machine["cpu"]["cores"],
        "threads": threads,
        "instruction_set": native.instruction_set(),
        "memory_gib": memory_gib(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {"python": machine["versions"]["python"], **{name: facts[name] for name in VERSIONS}},
    }


def memory_gib() -> float | None:
    """Return the machine's memory, or None where the system does not show it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(size / 2**30, 1)


def watch_others() -> Callable[[], float | None]:
    """Return a function that says what share of all processor time since now went to other programs.

    It knows the time of child processes that have ended, and answers None where the system does not show it.
    """
    before = read_cpu_times()

    def share() -> float | None:
        load = load_between(before, read_cpu_times())
        return None if load is None else round(min(1.0, load.others / load.cpus), 3)

    return share
