"""A function getting ready to be timed, and its runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchwhy.errors import ArgumentTypeError
from torchwhy.timing.laziness import Promise, promised, refuse_coroutine
from torchwhy.timing.measurement import Measurement
from torchwhy.timing.quantiles import quantile
from torchwhy.timing.stopwatch import Stopwatch
from torchwhy.timing.timing_warnings import TimingWarning
from torchwhy.timing.warmup import settle

__all__ = ["Contender"]

READING_SHARE = 0.002  # of a run, at most, may be spent on reading the clock and waiting for an idle device
MOST_CALLS = 1_000_000


class Contender:
    """One function: warm it up once, then take as many runs as wanted, at any time.

    >>> now = [0.0]
    >>> contender = Contender("two seconds", lambda: now.__setitem__(0, now[0] + 2.0), clock=lambda: now[0])
    >>> contender.warm_up(limit_s=1.0)
    >>> contender.run(), contender.calls
    (2.0, 1)
    """

    def __init__(self, name: str, fn: Callable[[], Any], clock: Callable[[], float]) -> None:
        """Take a function without arguments and a clock in s.

        Raises:
            ArgumentTypeError: `fn` cannot be called.
        """
        if not callable(fn):
            raise ArgumentTypeError(
                f"{name} must be a function, got {type(fn).__name__}: pass lambda: step(batch), not step(batch)"
            )
        self.name = name
        self.fn = fn
        self.calls = 1
        self.promise: Promise | None = None
        self.times_s: list[float] = []
        self._warmup_times_s: list[float] = []
        self._devices: tuple[torch.device, ...] = ()
        self._stopwatch = Stopwatch(fn, clock)

    @property
    def spent_s(self) -> float:
        """Seconds spent in calls after the first one, warm-up included; the first may compile for minutes."""
        return sum(self._warmup_times_s[1:]) + self.calls * sum(self.times_s)

    @property
    def call_s(self) -> float:
        """Seconds a call took at the end of the warm-up."""
        return quantile(self._warmup_times_s[1:][-5:], 0.5)

    @property
    def on_accelerator(self) -> bool:
        """Whether runs wait for an accelerator."""
        return bool(self._devices)

    def warm_up(self, limit_s: float) -> None:
        """Call until times settle or `limit_s` is spent, and choose how many calls make a run."""
        start_s = self._stopwatch.read()
        result = self.fn()
        first_s = self._stopwatch.read() - start_s
        refuse_coroutine(result)
        self.promise = promised(result)
        del result  # it may hold much of a device's memory
        self._devices = self._stopwatch.freeze()
        self._warmup_times_s = [*settle(lambda: self._stopwatch.block(1), first_s, limit_s)]
        reading_s = quantile([self._stopwatch.block(0) for _ in range(5)], 0.5)
        wanted = math.ceil(reading_s / READING_SHARE / max(self.call_s - reading_s, reading_s / 50))
        self.calls = min(max(1, wanted), MOST_CALLS)

    def take_warm_up_as_run(self) -> None:
        """Make the last call of the warm-up the first run, where there is no time for another."""
        *self._warmup_times_s, last_s = self._warmup_times_s
        self.calls = 1
        self.times_s.append(last_s)

    def run(self) -> float:
        """Take one run and return its seconds per call."""
        self.times_s.append(self._stopwatch.block(self.calls) / self.calls)
        return self.times_s[-1]

    def measurement(self, warnings: tuple[TimingWarning, ...] = ()) -> Measurement:
        """Return the runs taken so far."""
        return Measurement(
            name=self.name,
            times_s=tuple(self.times_s),
            calls_per_run=self.calls,
            first_s=self._warmup_times_s[0],
            warmup_calls=len(self._warmup_times_s),
            devices=tuple(map(str, self._devices)),
            threads=torch.get_num_threads(),
            warnings=warnings,
        )
