"""A program: a seed, which faults are planted, which of them are active, and how it is recorded.

All that is random follows from the seed and a key, not from the order of drawing: taking out a fault changes nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, log
from typing import TypeVar
from zlib import crc32

from tests.simulator.faults import FAULTS
from tests.simulator.kernels import DEVICES, Device

T = TypeVar("T")

RESOURCES = ("host", "device", "data", "communication", "copies", "waiting")
"""Each can be made free, to find out what limits a program; "waiting": no call waits for the device."""


@dataclass(frozen=True)
class Recording:
    """What the profiler records. `costs`: whether each event costs the host time."""

    stacks: bool = True
    shapes: bool = True
    costs: bool = True


@dataclass(frozen=True)
class Program:
    """A training program, or one of its variants."""

    seed: int
    planted: tuple[str, ...] = ()
    active: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    recording: Recording = field(default_factory=Recording)
    ranks: int = 1

    def without(self, *faults: str) -> Program:
        return replace(self, active=self.active - {*faults})

    def with_free(self, resource: str) -> Program:
        return replace(self, free=self.free | {resource})

    def draw(self, key: str) -> float:
        """A number from 0 to 1."""
        return crc32(key.encode(), self._start) / 2**32

    @cached_property
    def _start(self) -> int:
        return crc32(str(self.seed).encode())

    def uniform(self, key: str, low: float, high: float) -> float:
        return low + (high - low) * self.draw(key)

    def between(self, key: str, low: float, high: float) -> float:
        """A number whose logarithm is uniform."""
        return exp(self.uniform(key, log(low), log(high)))

    def choice(self, key: str, values: Sequence[T]) -> T:
        return values[int(self.draw(key) * len(values)) % len(values)]

    @cached_property
    def device(self) -> Device:
        return self.choice("device", DEVICES)

    @cached_property
    def steps(self) -> int:
        """How many steps are recorded."""
        return self.choice("steps", (6, 7, 8, 9))

    def on(self, fault: str) -> bool:
        """Whether the fault is planted and active."""
        if fault not in FAULTS:
            raise KeyError(fault)
        return fault in self.active


def draw(seed: int, planted: Sequence[str] | None = None, *, recording: Recording | None = None) -> Program:
    """Return the program of a seed, with the given faults, or with none to three of its own choice."""
    blank = Program(seed)
    if planted is None:
        wanted = blank.choice("how many", (0, 1, 1, 1, 2, 2, 3))
        names = sorted(FAULTS, key=lambda name: blank.draw(f"fault {name}"))
        chosen: list[str] = []
        for name in names:
            if len(chosen) < wanted and compatible(name, chosen):
                chosen.append(name)
        planted = chosen
    if recording is None:
        stacks = blank.draw("stacks") < 0.7
        recording = Recording(stacks, blank.draw("shapes") < 0.8, blank.draw("costs") < 0.7)
    ranks = blank.choice("ranks", (2, 4)) if any(FAULTS[name].ranks for name in planted) else 1
    return replace(blank, planted=tuple(planted), active=frozenset(planted), recording=recording, ranks=ranks)


def compatible(name: str, others: Sequence[str]) -> bool:
    return all(name not in FAULTS[other].excludes and other not in FAULTS[name].excludes for other in others)
