"""Outermost calls of modules, eager or compiled, and of compiled functions.

Eager modules are seen by global forward hooks. Those change what `torch.compile` makes of a module: it would trace
`_call_impl` and look its cache up for each frame of it. So the hooks go at the program's first `torch.compile`, before
anything is compiled, and from then on calls of what was compiled are announced.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from torchwhy.capture.containment import Contain
from torchwhy.capture.launch.importing import after_import

__all__ = ["Calls"]


class Calls:
    """Announces outermost calls until `remove`.

    Args:
        called: is given a number that identifies what was called, and a label.
        ignore: whether to look away just now.
        contain: see `StepWatch`.
    """

    def __init__(self, called: Callable[[int, str], None], ignore: Callable[[], bool], contain: Contain) -> None:
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._called, self._ignore, self._contain = called, ignore, contain
        self._running: list[Any] = []  # what is outermost, while it runs
        begins, ends = register_module_forward_pre_hook, register_module_forward_hook
        self._handles = [begins(contain(self._begins)), ends(contain(self._ends), always_call=True)]
        self._only: tuple[int, Callable[[], None]] | None = None
        self._undo = [self._remove_hooks, *self._watch_compiled()]

    def remove(self) -> None:
        """Announce nothing more."""
        while self._undo:
            self._undo.pop()()

    def announce_only(self, key: int, called: Callable[[], None]) -> None:
        """From now on, announce calls of one thing, and slow nothing else down.

        Args:
            key: its number.
            called: replaces the first callback.
        """
        self._only = key, called
        for module in self._running:
            self._announce_module(module)

    def _announce_module(self, module: Any) -> None:
        """If this is the one thing, watch it alone."""
        assert self._only is not None
        key, called = self._only
        if id(module) == key:
            self._remove_hooks()
            if not self._is_announced(module):
                self._undo.append(_announce_instance(module, self._contain(called)))

    @staticmethod
    def _is_announced(called: Any) -> bool:
        """Whether something compiled is called, which announces itself."""
        from torch.nn import Module

        return not isinstance(called, Module) or hasattr(called, "_orig_mod")

    def _remove_hooks(self) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _watch_compiled(self) -> list[Callable[[], None]]:
        import torch

        original = torch.compile

        @functools.wraps(original)
        def compiling(model: Any = None, **options: Any) -> Any:
            self._contain(self._remove_hooks)()
            made = original(model, **options)
            if model is None or isinstance(made, torch.nn.Module):
                return made  # a decorator, which comes back here; a module, whose calls are seen below
            label = f"calls of {getattr(model, '__qualname__', 'a compiled function')}"
            return self._contain(self._announced)(made, label) or made

        setattr(torch, "compile", compiling)  # noqa: B010  (mypy lets no function of a module be assigned)
        undo: list[Callable[[], None]] = [lambda: setattr(torch, "compile", original)]
        watch = self._contain(lambda module: undo.append(self._watch_modules(module.OptimizedModule)))
        after_import("torch._dynamo.eval_frame", watch)
        return undo

    def _watch_modules(self, owner: Any) -> Callable[[], None]:
        original = owner.__call__
        watched = self._announced(original, None)
        owner.__call__ = watched
        return lambda: setattr(owner, "__call__", original)

    def _announced(self, function: Any, label: str | None) -> Any:
        """Wrap a function, or a module's `__call__` unless it has a label."""
        eval_frame: Any = sys.modules["torch._dynamo.eval_frame"]

        @self._contain
        def begins(called: Any) -> bool:
            """Announce a call; return whether it is the outermost one."""
            if self._only is not None:
                key, announce = self._only
                if id(called) == key:
                    announce()
                return False
            if self._running or self._ignore():
                return False
            self._running.append(called)
            self._called(id(called), label or f"forward of {type(called._orig_mod).__name__}")
            return True

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            outermost = begins(function if label else args[0])
            try:
                return function(*args, **kwargs)
            finally:
                if outermost:
                    self._running.clear()

        watched: Any = run
        eval_frame.skip_code(watched.__code__)  # never compiled itself, where it is called between two compiled parts
        return watched

    def _begins(self, module: Any, args: Any) -> None:
        if self._only is not None:  # its step began with a label, before it was called
            self._announce_module(module)
        elif not self._running and not self._ignore():
            self._running.append(module)
            self._called(id(module), f"forward of {type(module).__name__}")

    def _ends(self, module: Any, args: Any, result: Any) -> None:
        if self._running and self._running[0] is module:
            self._running.clear()


def _announce_instance(module: Any, called: Callable[[], object]) -> Callable[[], None]:
    """Announce calls of one module; return what undoes it.

    This replaces its class: hooks would also slow down the modules inside, and an instance attribute would be saved.
    """
    owner, inherits = type(module), "__call__" not in vars(type(module))
    original = owner.__call__

    @functools.wraps(original)
    def run(this: Any, *args: Any, **kwargs: Any) -> Any:
        if this is module:
            called()
        return original(this, *args, **kwargs)

    owner.__call__ = run
    return functools.partial(delattr, owner, "__call__") if inherits else lambda: setattr(owner, "__call__", original)
