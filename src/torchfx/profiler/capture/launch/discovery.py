"""Finds the steps of a program that does not announce them.

Three things repeat once per step: an optimizer steps, a DataLoader gives a batch, an outermost module runs. The first
that fits wins, in this order, because an optimizer step spans several batches where gradients accumulate, and a batch
several forward passes where text is generated. What repeats is watched for a while before it is believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

__all__ = ["PATIENCE", "Source", "StepFinder"]

PATIENCE = 32  # batches or forward passes after which nothing better is expected; few accumulate gradients longer


class Source(Enum):
    """What marks the beginning of a step; later ones go before earlier ones."""

    FORWARD = "forward"
    DATA = "dataloader"
    OPTIMIZER = "optimizer"


RANK = {source: rank for rank, source in enumerate(Source)}


class StepFinder:
    """Turns events into steps.

    A step that ends with an optimizer begins with the next batch or forward pass, so that the optimizer's own range is
    over when the next step's begins.

    Args:
        wanted: the only source to use; None chooses.
        begin: called when steps are found and one begins, with a label and how many steps have passed before; and
            again when a better source turns up.
        step: called when one step ends and the next begins.
        may_switch: whether a better source may still replace the one in use.
        has_optimizer: whether the program made an optimizer.
    """

    def __init__(
        self,
        wanted: Source | None,
        begin: Callable[[str, int], None],
        step: Callable[[], None],
        may_switch: Callable[[], bool],
        has_optimizer: Callable[[], bool],
    ) -> None:
        """Keep the calls; nothing has been seen yet."""
        self.source: Source | None = None
        self._wanted, self._begin, self._step = wanted, begin, step
        self._may_switch, self._has_optimizer = may_switch, has_optimizer
        self._key = 0
        self._seen: Counter[tuple[Source, int]] = Counter()
        self._optimizer: tuple[int, str] | None = None
        self._pending = False  # the optimizer has stepped, the next step has not begun
        self._batches = False
        self._trains: bool | None = None
        self._expects: bool | None = None

    def optimizer(self, key: int, name: str) -> None:
        """An optimizer has stepped. Where there are several, the first one counts."""
        if self._optimizer is None:
            self._optimizer = key, name
        if key == self._optimizer[0]:
            self._after_optimizer()
            self._pending = True

    def data(self, key: int, trains: bool) -> None:
        """A DataLoader is about to be asked for a batch; `key` tells data sets apart."""
        self._batches = True
        if self._trains is None:
            self._trains = trains
        self._seen[Source.DATA, key] += 1
        if not self._after_optimizer():
            self._repeated(Source.DATA, key, "DataLoader", better=False)

    def forward(self, key: int, label: str, trains: bool) -> None:
        """An outermost module or compiled function is about to run; `trains` says whether gradients are recorded."""
        self._trains = trains
        self._seen[Source.FORWARD, key] += 1
        if not self._after_optimizer():
            self._repeated(Source.FORWARD, key, label, better=self._batches)

    def _after_optimizer(self) -> bool:
        """Begin the step after an optimizer's; return whether that is what this event does."""
        if not self._pending:
            return False
        self._pending = False
        assert self._optimizer is not None
        key, name = self._optimizer
        self._boundary(Source.OPTIMIZER, key, f"{name}.step", before=1)
        return self.source is Source.OPTIMIZER

    def _repeated(self, source: Source, key: int, label: str, better: bool) -> None:
        """Believe in a source that has come twice, or often if a better one may come."""
        count = self._seen[source, key]
        if source is self._wanted or self.source is source:
            needed = 1
        else:
            needed = PATIENCE if better or self._expects_optimizer(count) else 2
        if count >= needed:
            self._boundary(source, key, label, before=count - 1)

    def _boundary(self, source: Source, key: int, label: str, before: int) -> None:
        if self._wanted not in {None, source}:
            return
        if source is self.source:
            if key == self._key:
                self._step()
        elif self.source is None or (RANK[source] > RANK[self.source] and self._may_switch()):
            self.source, self._key = source, key
            self._begin(label, before)

    def _expects_optimizer(self, count: int) -> bool:
        if self._expects is None and count >= 2:
            self._expects = bool(self._trains) and self._has_optimizer()
        return bool(self._expects)
