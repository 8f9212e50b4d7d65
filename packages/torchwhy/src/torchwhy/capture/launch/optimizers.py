"""Announces steps of optimizers, and distinguishes one that replaces another from a second one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from torchwhy.capture.containment import Contain

__all__ = ["Optimizers"]


class Optimizers:
    """Announces steps until `remove`.

    A program may make a new optimizer for each phase of its training, or even for each step. An optimizer that was made
    after the last step of another of its class takes that one's number; of several the one that stepped first.

    Args:
        stepped: is given the number that identifies the optimizer, and the name of its class.
        contain: see `StepWatch`.
    """

    def __init__(self, stepped: Callable[[int, str], None], contain: Contain) -> None:
        from torch.optim import Optimizer
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._stepped = stepped
        self._clock = itertools.count()
        self._made: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._last: dict[int, tuple[type, int]] = {}  # of each number, the class and the last step
        self._undo = [
            register_optimizer_step_post_hook(
                contain(lambda optimizer, args, kwargs: self._announce(optimizer))
            ).remove,
            self._watch(Optimizer, contain),
        ]

    def announce(self, stepped: Callable[[int, str], None]) -> None:
        """From now on announce steps to `stepped`."""
        self._stepped = stepped

    def remove(self) -> None:
        """Announce nothing more."""
        while self._undo:
            self._undo.pop()()

    def _announce(self, optimizer: Any) -> None:
        kind = type(optimizer)
        if optimizer not in self._numbers:
            made = self._made.get(optimizer, -1)
            before = [(last, number) for number, (other, last) in self._last.items() if other is kind and last < made]
            self._numbers[optimizer] = min(before)[1] if before else len(self._last)
        number = self._numbers[optimizer]
        self._last[number] = kind, next(self._clock)
        self._stepped(number, kind.__name__)

    def _watch(self, owner: Any, contain: Contain) -> Callable[[], None]:
        original = owner.__init__

        @contain
        def made(this: Any) -> None:
            self._made[this] = next(self._clock)

        @functools.wraps(original)
        def make(this: Any, *args: Any, **kwargs: Any) -> None:
            made(this)
            original(this, *args, **kwargs)

        owner.__init__ = make

        def remove() -> None:
            owner.__init__ = original

        return remove
