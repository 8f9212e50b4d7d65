"""The program's labels (`record_function`) that are open."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from torchwhy.capture.containment import Contain
from torchwhy.capture.launch.importing import after_import

__all__ = ["Label", "Labels"]


class Label(NamedTuple):
    """One use of a label: its name, and a number that no other use has."""

    name: str
    number: int


class Labels:
    """Watches labels until `remove`.

    PyTorch's own labels, around an optimizer's step for instance, begin but never count as open: they are its calls.

    Args:
        begins: is called before a label of the program, or that around an optimizer's step, begins: with its name, and
            whether it is an optimizer's.
        ignore: whether to look away just now.
        contain: see `StepWatch`.
    """

    def __init__(self, begins: Callable[[str, bool], None], ignore: Callable[[], bool], contain: Contain) -> None:
        from torch.autograd.profiler import record_function

        from torchwhy.trace.meaning.annotations import GARBAGE_COLLECTION, OPTIMIZER_STEP, PYTORCHS_OWN

        self._uses: list[tuple[Any, Label]] = []
        self._count = 0
        not_programs = PYTORCHS_OWN | GARBAGE_COLLECTION
        owner: Any = record_function
        enter, leave = owner.__enter__, owner.__exit__

        @contain
        def opens(this: Any) -> None:
            if not ignore():
                of_optimizer = OPTIMIZER_STEP.names(this.name)
                of_program = not not_programs.names(this.name)
                if of_optimizer or of_program:
                    begins(this.name, of_optimizer)
                if of_program:
                    self._count += 1
                    self._uses.append((this, Label(this.name, self._count)))

        @contain
        def closes(this: Any) -> None:
            if self._uses and not ignore():
                self._uses = [use for use in self._uses if use[0] is not this]

        @functools.wraps(enter)
        def entering(this: Any) -> Any:
            opens(this)
            return enter(this)

        @functools.wraps(leave)
        def leaving(this: Any, *error: Any) -> Any:
            closes(this)
            return leave(this, *error)

        watched: tuple[Any, ...] = (entering, leaving)
        for function in watched:  # never compiled itself, where it is called between two compiled parts
            after_import("torch._dynamo.eval_frame", contain(functools.partial(_skip, function.__code__)))
        self._owner = owner
        self._originals = {"__enter__": enter, "__exit__": leave}
        for name, function in zip(self._originals, watched, strict=True):
            setattr(owner, name, function)

    @property
    def open(self) -> tuple[Label, ...]:
        """The program's labels that are open, outermost first."""
        return tuple(label for _, label in self._uses)

    def remove(self) -> None:
        """Watch no more."""
        for name, function in self._originals.items():
            setattr(self._owner, name, function)


def _skip(code: CodeType, eval_frame: ModuleType) -> None:
    eval_frame.skip_code(code)
