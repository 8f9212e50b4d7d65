"""One function under `torch.utils.benchmark.Timer`, with a clock that waits for the devices in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.benchmark import Timer

from torchwhy.timing.devices import accelerators_in_use, synchronize

__all__ = ["Stopwatch"]


class Stopwatch(Timer):
    """Times blocks of calls; the loop, and garbage collection switched off meanwhile, are PyTorch's.

    `Timer` picks block sizes and the number of blocks itself, and runs one function to its end before the next. Here
    both are decided outside, so that several functions can take turns; what is inherited is how one block is timed.

    Until `freeze`, every reading looks which accelerators are in use; afterwards it waits for those found last.
    """

    def __init__(self, fn: Callable[[], Any], clock: Callable[[], float]) -> None:
        """Take a function without arguments and a clock that returns seconds."""
        self._clock = clock
        self._devices: tuple[torch.device, ...] | None = None
        super().__init__("fn()", timer=self.read, globals={"fn": fn}, num_threads=torch.get_num_threads())

    def read(self) -> float:
        """Wait for the accelerators in use, then return the clock's reading in s."""
        synchronize(accelerators_in_use() if self._devices is None else self._devices)
        return self._clock()

    def freeze(self) -> tuple[torch.device, ...]:
        """Fix the accelerators to wait for and return them."""
        self._devices = accelerators_in_use()
        return self._devices

    def block(self, calls: int) -> float:
        """Return the seconds that `calls` calls took together; at least 1e-9.

        >>> ticks = iter([0.0, 3.0])
        >>> Stopwatch(lambda: None, lambda: next(ticks)).block(calls=2)
        3.0
        """
        return float(self._timeit(calls))
