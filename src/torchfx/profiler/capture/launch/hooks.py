"""Watches what PyTorch does to find steps, and goes away without a trace.

Nothing here is seen by `torch.compile`, so what is compiled under the profiler is what is compiled without it.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

from torchfx.profiler.capture.launch.calls import watch_calls
from torchfx.profiler.capture.launch.discovery import Source, StepFinder
from torchfx.profiler.capture.launch.labels import Labels
from torchfx.profiler.capture.open_calls import inside_pytorch

__all__ = ["find_steps", "has_optimizer"]


def find_steps(
    wanted: Source | None, begin: Callable[[str, int], None], step: Callable[[], None], may_switch: Callable[[], bool]
) -> list[Callable[[], None]]:
    """Find steps in this thread; return what undoes it, to be called in turn.

    Args:
        wanted: the only source that matters; modules are watched only where they may.
        begin: see `StepFinder`, as for `step` and `may_switch`.
    """
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    here, process = threading.get_ident(), os.getpid()

    def ignored() -> bool:
        # What a backward pass runs again (checkpoints) is no step.
        in_backward = torch._C._current_graph_task_id() != -1
        return threading.get_ident() != here or os.getpid() != process or in_backward

    labels = Labels(lambda name, of_optimizer: finder.label(name, of_optimizer), ignored)
    finder = StepFinder(
        wanted, begin, step, may_switch, has_optimizer, open_labels=lambda: labels.open, in_operator=inside_pytorch
    )

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling() and not ignored():
            finder.optimizer(id(optimizer), type(optimizer).__name__)

    loading, undo_data = _watch_data(finder, ignored)
    undo = [labels.remove, register_optimizer_step_post_hook(stepped).remove, undo_data]
    if wanted in {None, Source.FORWARD}:
        undo += watch_calls(
            lambda key, label: finder.forward(key, label, torch.is_grad_enabled()),
            lambda: ignored() or bool(loading) or torch.compiler.is_compiling(),
        )
    return undo


def has_optimizer() -> bool:
    """Whether an optimizer exists anywhere in the program."""
    from torch.optim import Optimizer

    # type() and not isinstance(): proxies would be made to load what they stand for.
    return any(issubclass(type(thing), Optimizer) for thing in gc.get_objects())


def _watch_data(finder: StepFinder, ignored: Callable[[], bool]) -> tuple[list[int], Callable[[], None]]:
    """Return a list that is not empty while a batch is being made, and what undoes it."""
    import torch
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    original: Callable[[Any], Any] = _BaseDataLoaderIter.__next__
    loading: list[int] = []

    @functools.wraps(original)
    def give(self: Any) -> Any:
        if ignored() or loading:
            return original(self)
        finder.data(id(self._dataset), torch.is_grad_enabled())
        loading.append(1)
        try:
            return original(self)
        finally:
            loading.clear()

    setattr(_BaseDataLoaderIter, "__next__", give)  # noqa: B010  (a method is not assigned otherwise under mypy)
    return loading, lambda: setattr(_BaseDataLoaderIter, "__next__", original)
