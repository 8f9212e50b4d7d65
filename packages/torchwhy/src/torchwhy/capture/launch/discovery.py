"""Finds the steps of a program that does not announce them.

Three things repeat once per step: an optimizer steps, a DataLoader gives a batch, an outermost module runs. The first
that fits wins, in this order, because an optimizer step spans several batches where gradients accumulate, and a batch
several forward passes where text is generated. What repeats is watched for a while before it is believed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from enum import Enum

from torchwhy.capture.launch.labels import Label

__all__ = ["PATIENCE", "PATIENCE_S", "Source", "StepFinder"]

PATIENCE = 32
PATIENCE_S = 3.0
"""After this number of batches or forward passes and this time (s) no better signal is expected: few programs
accumulate gradients longer."""


class Source(Enum):
    """What marks the beginning of a step; later entries take precedence."""

    FORWARD = "forward"
    DATA = "dataloader"
    OPTIMIZER = "optimizer"


RANK = {source: rank for rank, source in enumerate(Source)}


class StepFinder:
    """Turns events into steps.

    A step that ends with an optimizer begins with the next batch, forward pass or label, so that the optimizer's own
    range is over when the next step's begins. No step begins inside a label of the program (`record_function`), except
    for labels around the whole loop: where events lie inside a label, steps begin with that label. No step begins
    inside an operator, a custom function or a compiled region.

    Args:
        wanted: the only source to use; None chooses.
        begin: called when steps are found and one begins, with a label and how many steps have passed before; and
            again when a better source turns up.
        step: called when one step ends and the next begins.
        may_switch: whether a better source may still replace the one in use.
        has_optimizer: whether the program made an optimizer.
        open_labels: returns the program's labels that are open, outermost first.
        in_operator: whether a call into PyTorch is open.
        clock: in seconds.
    """

    def __init__(
        self,
        wanted: Source | None,
        begin: Callable[[str, int], None],
        step: Callable[[], None],
        may_switch: Callable[[], bool],
        has_optimizer: Callable[[], bool],
        open_labels: Callable[[], tuple[Label, ...]],
        in_operator: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the calls; nothing has been seen yet."""
        self.source: Source | None = None
        self.key = 0
        self._wanted, self._begin, self._step = wanted, begin, step
        self._may_switch, self._has_optimizer = may_switch, has_optimizer
        self._open_labels, self._in_operator, self._clock = open_labels, in_operator, clock
        self._seen: Counter[tuple[Source, int]] = Counter()
        self._first: dict[tuple[Source, int], float] = {}  # when each was seen first
        self._around: dict[tuple[Source, int], frozenset[Label]] = {}  # labels open at the last event
        self._entrances: dict[str, tuple[Source, int, str]] = {}  # what comes inside a label, by the label's name
        self._optimizer: tuple[int, str] | None = None
        self._loop: frozenset[Label] = frozenset()  # labels open at the optimizer's step before the last
        self._pending = False  # the optimizer has stepped, the next step has not begun
        self._refused = False  # it could have begun if nothing were open
        self._batches = False
        self._expects: bool | None = None

    def optimizer(self, key: int, name: str) -> None:
        """An optimizer has stepped. Where there are several, the first one counts."""
        if self._optimizer is None:
            self._optimizer = key, name
        if key == self._optimizer[0]:
            self._seen[Source.OPTIMIZER, key] += 1
            self._loop = self._arrive(Source.OPTIMIZER, key)
            self._pending = True

    @property
    def is_over(self) -> bool:
        """Whether steps end with an optimizer's and it has stepped in the one that is open."""
        return self._pending and self.source is Source.OPTIMIZER

    def data(self, key: int) -> None:
        """A DataLoader is about to load a batch; `key` identifies the data set."""
        self._batches = True
        self._event(Source.DATA, key, "DataLoader")

    def forward(self, key: int, label: str) -> None:
        """An outermost module or compiled function is about to run."""
        self._event(Source.FORWARD, key, label)

    def label(self, name: str, of_optimizer: bool) -> None:
        """A label of the program, or that around an optimizer's step, is about to begin."""
        if self._pending and (not of_optimizer or self._nowhere_else()):
            self._after_optimizer()
        elif name in self._entrances:
            source, key, label = self._entrances[name]
            self._repeated(source, key, label, self._seen[source, key] + 1, self._around[source, key])

    def _event(self, source: Source, key: int, label: str) -> None:
        self._seen[source, key] += 1
        around = self._arrive(source, key)
        entered = [opened.name for opened in self._open_labels() if opened not in around]
        if entered:
            self._entrances[entered[0]] = source, key, label
        if not self._after_optimizer():
            self._repeated(source, key, label, self._seen[source, key], around)

    def _arrive(self, source: Source, key: int) -> frozenset[Label]:
        """Note the labels around an event; return those around the one before: what is open at both spans the loop."""
        before = self._around.get((source, key), frozenset())
        self._around[source, key] = frozenset(self._open_labels())
        return before

    def _after_optimizer(self) -> bool:
        """Begin the step after an optimizer's; return whether this event begins it, or a later one."""
        if not self._pending:
            return False
        assert self._optimizer is not None
        key, name = self._optimizer
        if self._may_begin(self._loop):
            self._pending = self._refused = False
            self._boundary(Source.OPTIMIZER, key, f"{name}.step", before=self._seen[Source.OPTIMIZER, key])
        else:
            self._refused = True
        return self.source is Source.OPTIMIZER

    def _nowhere_else(self) -> bool:
        """Whether the next step of the optimizer is the first place since the last where a step may begin."""
        return self._refused or all(source is Source.OPTIMIZER for source, _ in self._seen)

    def _repeated(self, source: Source, key: int, label: str, count: int, loop: frozenset[Label]) -> None:
        """Believe in a source that has come twice, or often if a better one may come."""
        known = source is self._wanted or self.source is source
        if (known or self._believed(source, key, count)) and self._may_begin(loop):
            self._boundary(source, key, label, before=count - 1)

    def _believed(self, source: Source, key: int, count: int) -> bool:
        began = self._first.setdefault((source, key), self._clock())
        if count < 2 or not ((source is Source.FORWARD and self._batches) or self._expects_optimizer()):
            return count >= 2
        return count >= PATIENCE and self._clock() - began >= PATIENCE_S

    def _may_begin(self, loop: frozenset[Label]) -> bool:
        """Whether a step may begin here: no labels are open but those around the loop, and no call into PyTorch."""
        return loop.issuperset(self._open_labels()) and not self._in_operator()

    def _boundary(self, source: Source, key: int, label: str, before: int) -> None:
        if self._wanted not in {None, source}:
            return
        if source is self.source:
            if key == self.key:
                self._step()
        elif self.source is None or (RANK[source] > RANK[self.source] and self._may_switch()):
            self.source, self.key = source, key
            self._begin(label, before)

    def _expects_optimizer(self) -> bool:
        if self._expects is None:
            self._expects = self._has_optimizer()
        return self._expects
