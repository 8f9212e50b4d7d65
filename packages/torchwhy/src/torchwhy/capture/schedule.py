"""Which steps are recorded: the schedule of a capture, in steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Any, Final

from torchwhy.errors import ArgumentError

__all__ = ["ACTIVE", "Phase", "Schedule"]

ACTIVE = 3  # steps recorded, at least


_LOOKED_AT: Final = 10_000
"""Steps for which a function is asked what is recorded; one whose windows reach that far has no end."""


class Phase(Enum):
    """The profiler's action during one step."""

    WAIT = "wait"
    WARMUP = "warmup"
    ACTIVE = "active"
    DONE = "done"


@dataclass(frozen=True)
class Schedule:
    """Steps left alone, steps that warm the profiler up, steps recorded; then the same again.

    Waiting steps run unprofiled: they let caches, autotuning and compilation settle, and they are the baseline that the
    profiler's own cost is measured against. Warm-up steps run with the profiler on and are thrown away, because the
    first step under a profiler pays for its buffers.

    A window that grows is recorded on, step by step, until their median is known (`StepClock.is_settled`).

    Args:
        wait: steps before each window that run unprofiled, >= 0.
        warmup: steps before each window that run under the profiler and are dropped, >= 0.
        active: steps recorded in each window, >= 1.
        repeat: number of windows, >= 0; 0 is no end.
        grows: whether the window grows; only a single one does.

    Raises:
        ArgumentError: one of them is not a whole number in its range.

    >>> [Schedule(wait=1, warmup=1, active=2).phase(step).value for step in range(5)]
    ['wait', 'warmup', 'active', 'active', 'done']
    """

    wait: int = 3
    warmup: int = 1
    active: int = ACTIVE
    repeat: int = 1
    grows: bool = False

    @classmethod
    def of(cls, wait: int, warmup: int, active: int | None, repeat: int) -> Schedule:
        """Return a schedule; without a number of steps to record, a single window grows."""
        return cls(wait, warmup, ACTIVE if active is None else active, repeat, active is None and repeat == 1)

    @classmethod
    def of_actions(cls, action: Callable[[int], Any]) -> Schedule:
        """Return the schedule that a function from a step's number to a `ProfilerAction` describes.

        `torch.profiler.schedule(...)` returns such functions; its `skip_first` is part of the first wait.

        Args:
            action: the profiler's action for the steps up to the end of the second window, and for one much later.

        Raises:
            ArgumentError: no window ends within 10,000 steps, or the second has another wait than the first.
        """
        names = [getattr(action(step), "name", "") for step in range(_LOOKED_AT)]
        lengths = [(name, len(list(same))) for name, same in groupby(names)]
        first, rest = _window(lengths)
        if first is None:
            raise ArgumentError(f"schedule must record a window within {_LOOKED_AT} steps, got {action!r}")
        second, rest = _window(rest)
        if second is None:
            return cls(*first)
        if second != first:
            raise ArgumentError(
                "schedule must have the same wait, warmup and active in each window; skip_first needs repeat=1"
            )
        repeat = 2
        while (again := _window(rest))[0] is not None:
            repeat, rest = repeat + 1, again[1]
        return cls(*first, repeat=0 if (repeat + 1) * sum(first) > _LOOKED_AT else repeat)

    def __post_init__(self) -> None:
        """Check the four numbers."""
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ArgumentError(f"{name} must be a whole number of steps >= {least}, got {value!r}")

    @property
    def cycle(self) -> int:
        """Steps from the start of one window's wait to its end."""
        return self.wait + self.warmup + self.active

    @property
    def length(self) -> int:
        """Steps the program has to run for every window to be whole; without an end, for one."""
        return self.cycle * max(self.repeat, 1)

    @property
    def first_recorded(self) -> int:
        """Steps that pass before the first one is recorded."""
        return self.wait + self.warmup

    def grown(self) -> Schedule:
        """Return it with a window that is longer by a step."""
        return replace(self, active=self.active + 1)

    def phase(self, step: int) -> Phase:
        """The phase of the step with this number, counted from 0."""
        if self.repeat and step >= self.length:
            return Phase.DONE
        place = step % self.cycle
        if place < self.wait:
            return Phase.WAIT
        return Phase.WARMUP if place < self.first_recorded else Phase.ACTIVE

    def ends_window(self, step: int) -> bool:
        """Whether this step is the last one of a window."""
        return (not self.repeat or step < self.length) and step % self.cycle == self.cycle - 1

    def __str__(self) -> str:
        """Return the schedule as text for reports."""
        text = f"wait {self.wait}, warmup {self.warmup}, active {self.active}{' or more' if self.grows else ''}"
        if self.repeat == 1:
            return text
        return f"{text}, repeat {self.repeat}" if self.repeat else f"{text}, again and again"


def _window(lengths: Sequence[tuple[str, int]]) -> tuple[tuple[int, int, int] | None, Sequence[tuple[str, int]]]:
    """Wait, warm-up and recorded steps of the first window of a run-length encoded schedule, and what follows it."""
    wait = warmup = active = 0
    for i, (name, length) in enumerate(lengths):
        if name == "RECORD_AND_SAVE":
            # Windows of one recorded step without wait and warm-up follow each other as one run.
            rest = [(name, length - 1), *lengths[i + 1 :]] if length > 1 else lengths[i + 1 :]
            return (wait, warmup, active + 1), rest
        wait += length * (name == "NONE")
        warmup += length * (name == "WARMUP")
        active += length * (name == "RECORD")
    return None, ()
