"""Where a whole run's time goes by the program's lines: before its steps are found, and later outside of windows."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from torchwhy.capture.stack_samples import IMPORTING, RECORDING, StackSampler, StackSamples
from torchwhy.trace.meaning.frames import own_place

__all__ = ["RunTimes", "RunWatch", "Stretch"]

EVERY_S: Final = 0.01
"""Between samples before the first step: what matters there takes a second or more."""

LATER_S: Final = 0.05
"""Between samples from then on: steps that aren't recorded are to run as they do otherwise."""

LINES: Final = 20


@dataclass(frozen=True)
class Stretch:
    """A part of a run.

    Attributes:
        seconds: how long it is.
        lines: the program's own lines in which most of it passed, as [line, source, seconds, seconds of imports].
    """

    seconds: float = 0.0
    lines: list[tuple[str, str, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class RunTimes:
    """The time of a run in which steps were found.

    Attributes:
        seconds: how long the program ran, recording included.
        steps: how many steps had passed when they were found.
        optimizer: whether the program had an optimizer then.
        later_steps: how many ended from then on.
        start_up: from its begin until then.
        outside: from then on, without what was recorded, and without the time that recording takes besides.
        takes_rows: whether a DataLoader takes rows one by one out of tensors that lie in memory.
    """

    seconds: float
    steps: int
    optimizer: bool
    later_steps: int
    start_up: Stretch
    outside: Stretch
    takes_rows: bool = False


class RunWatch:
    """Watches the thread that makes it. It begins when the program does."""

    def __init__(self) -> None:
        """Begin."""
        self._began = self._found = time.perf_counter()
        self._sampler = StackSampler(EVERY_S, whole=False)
        self._before: StackSamples | None = None
        self._steps, self._optimizer, self._takes_rows = 0, False, False

    def steps_found(self, steps: int, optimizer: bool, takes_rows: bool = False) -> None:
        """The start-up is over, after some steps; see `RunTimes`."""
        if self._before is None:
            self._before, self._found, self._steps = self._sampler.end(), time.perf_counter(), steps
            self._optimizer, self._takes_rows = optimizer, takes_rows
            self._sampler = StackSampler(LATER_S, whole=False)

    def end(self, later_steps: int, recorded: Sequence[tuple[int, int]]) -> RunTimes | None:
        """Watch no more, and say what there is to say; None without steps.

        Args:
            later_steps: how many ended since they were found.
            recorded: when windows began and ended, nanoseconds since 1970.
        """
        later, ended = self._sampler.end(), time.perf_counter()
        if self._before is None:
            return None

        def is_outside(when: int) -> bool:
            return not any(begin <= when <= end for begin, end in recorded)

        start_up = Stretch(self._found - self._began, _stretch(self._before, lambda when: True).lines)
        outside = _stretch(later, is_outside)
        return RunTimes(
            ended - self._began, self._steps, self._optimizer, later_steps, start_up, outside, self._takes_rows
        )


def _stretch(samples: StackSamples, counts: Callable[[int], bool]) -> Stretch:
    """The time of the samples that count; one stands for the time since the one before."""
    sources = dict(zip(samples.frames, samples.lines, strict=True))
    spent, importing = defaultdict[str, float](float), defaultdict[str, float](float)
    stacks = [[samples.frames[place] for place in stack] for stack in samples.stacks]
    own = list(map(own_place, stacks))
    imports = [bool(stack) and stack[0].endswith(f": {IMPORTING}") for stack in stacks]
    recording = [any(RECORDING in frame for frame in stack) for stack in stacks]
    for (before, after), which in zip(pairwise(samples.times_ns), samples.which[1:], strict=False):
        if not recording[which] and counts(after):
            seconds = max(after - before, 0) / 1e9
            spent[own[which]] += seconds
            importing[own[which]] += seconds * imports[which]
    whole = sum(spent.values())
    longest = sorted((line for line in spent if line), key=lambda line: -spent[line])[:LINES]
    return Stretch(whole, [(line, sources[line], spent[line], importing[line]) for line in longest])
