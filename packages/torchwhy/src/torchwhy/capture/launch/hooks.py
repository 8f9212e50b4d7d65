"""Watches what PyTorch does to find steps, and goes away without a trace.

Nothing here is seen by `torch.compile`, so the profiler does not change the compiled code.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

from torchwhy.capture.containment import Contain
from torchwhy.capture.launch.calls import Calls
from torchwhy.capture.launch.discovery import Source, StepFinder
from torchwhy.capture.launch.labels import Labels
from torchwhy.capture.launch.optimizers import Optimizers
from torchwhy.capture.open_calls import inside_pytorch

__all__ = ["StepWatch", "has_optimizer"]


class StepWatch:
    """Finds steps in this thread until `remove`.

    Args:
        wanted: the only source that matters; modules are watched only where they may.
        begin: see `StepFinder`, as for `step` and `may_switch`.
        contain: makes of a function of ours one that the program may call; see `Session.contain`.
    """

    def __init__(
        self,
        wanted: Source | None,
        begin: Callable[[str, int], None],
        step: Callable[[], None],
        may_switch: Callable[[], bool],
        contain: Contain,
    ) -> None:
        import torch

        here, process = threading.get_ident(), os.getpid()
        self._elsewhere: Callable[[], bool] = lambda: threading.get_ident() != here or os.getpid() != process

        def ignored() -> bool:
            # What a backward pass runs again (checkpoints) is no step.
            return self._elsewhere() or torch._C._current_graph_task_id() != -1

        self._labels = Labels(lambda name, of_optimizer: finder.label(name, of_optimizer), ignored, contain)
        self._finder = finder = StepFinder(
            wanted,
            begin,
            step,
            may_switch,
            has_optimizer,
            open_labels=lambda: self._labels.open,
            in_operator=inside_pytorch,
        )

        def stepped(key: int, name: str) -> None:
            if not torch.compiler.is_compiling() and not ignored():
                finder.optimizer(key, name)

        def loads(iterator: Any) -> None:
            if not ignored():
                self.takes_rows |= _takes_rows(iterator)
                finder.data(id(iterator._dataset))

        self.takes_rows = False
        """Whether a DataLoader takes rows one by one out of tensors that lie in memory."""
        self._contain = contain
        loading, self._forget_data = _watch_data(contain(loads))
        self._optimizers = Optimizers(stepped, contain)
        self._forget_optimizers: Callable[[], None] = self._optimizers.remove
        self._calls: Calls | None = None
        if wanted in {None, Source.FORWARD}:
            self._calls = Calls(
                lambda key, label: finder.forward(key, label),
                lambda: ignored() or threading.get_ident() in loading or torch.compiler.is_compiling(),
                contain,
            )

    @property
    def source(self) -> Source | None:
        """What steps begin with; None as long as no steps are found."""
        return self._finder.source

    @property
    def step_is_over(self) -> bool:
        """Whether the optimizer has stepped in the step that is open."""
        return self._finder.is_over

    def only_time(self, step: Callable[[], None]) -> None:
        """Call `step` once in each further step, and slow the program down no more than that takes.

        Where in a step that is may differ from where it began until now.
        """
        source, key = self._finder.source, self._finder.key

        def called(this: int) -> None:
            if this == key and not self._elsewhere():
                step()

        if self._calls is not None and source is Source.FORWARD:
            self._calls.announce_only(key, lambda: called(key))
            forget, self._calls = self._calls.remove, None
        elif source is Source.OPTIMIZER:
            self._optimizers.announce(lambda this, name: called(this))
            forget, self._forget_optimizers = self._forget_optimizers, _nothing
        else:
            forget = _nothing
        self.remove()
        if source is Source.DATA:
            _, forget = _watch_data(self._contain(lambda iterator: called(id(iterator._dataset))))
        self._forget_data = forget

    def remove(self) -> None:
        """Watch no more."""
        self._labels.remove()
        self._forget_data()
        self._forget_optimizers()
        self._forget_data = self._forget_optimizers = _nothing
        if self._calls is not None:
            self._calls.remove()


def _nothing() -> None:
    """Be there to be called."""


def has_optimizer() -> bool:
    """Whether an optimizer exists anywhere in the program."""
    from torch.optim import Optimizer

    # type() and not isinstance(): proxies would be made to load what they stand for.
    return any(issubclass(type(thing), Optimizer) for thing in gc.get_objects())


def _takes_rows(iterator: Any) -> bool:
    """Whether an iterator of a DataLoader joins batches of single rows of a `TensorDataset`, or of a part of one."""
    from torch.utils.data import Subset, TensorDataset

    data = iterator._dataset
    while type(data) is Subset:
        data = data.dataset
    return type(data) is TensorDataset and bool(iterator._auto_collation)


def _watch_data(loads: Callable[[Any], None]) -> tuple[list[int], Callable[[], None]]:
    """Announce that batches are requested, with the iterator of a DataLoader.

    Return a list that is not empty while a batch is being made in this thread, and what undoes it.
    """
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    original: Callable[[Any], Any] = _BaseDataLoaderIter.__next__
    loading: list[int] = []

    @functools.wraps(original)
    def give(self: Any) -> Any:
        here = threading.get_ident()
        if here in loading:
            return original(self)
        loads(self)
        loading.append(here)
        try:
            return original(self)
        finally:
            loading.remove(here)

    setattr(_BaseDataLoaderIter, "__next__", give)  # noqa: B010  (a method is not assigned otherwise under mypy)
    return loading, lambda: setattr(_BaseDataLoaderIter, "__next__", original)
