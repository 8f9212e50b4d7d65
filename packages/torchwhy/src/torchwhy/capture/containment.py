"""Errors of the recorder end in the recorder: the program that calls it unknowingly never meets them.

Ctrl-C and errors that the program's own signal handlers raise may come while the recorder runs. They are the program's
and pass through.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from types import CodeType
from typing import Any, ParamSpec, Protocol, TypeVar

__all__ = ["Contain", "contained", "described", "is_programs"]

P = ParamSpec("P")
R = TypeVar("R")


class Contain(Protocol):
    """Makes of a function one that the program may call unknowingly: its errors end the recording."""

    def __call__(self, act: Callable[P, R]) -> Callable[P, R | None]:
        """Return that function, which returns None after an error."""


def contained(act: Callable[P, R], failed: Callable[[Exception], None]) -> Callable[P, R | None]:
    """Return a function that does the same, but gives its errors to `failed` and then returns None."""

    def run(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return act(*args, **kwargs)
        except Exception as error:
            if is_programs(error):
                raise
            failed(error)
            return None

    return run


def described(error: BaseException) -> str:
    """An error in a line, for notes.

    >>> described(KeyError("x"))
    "KeyError: 'x'"
    """
    return " ".join(f"{type(error).__name__}: {error}".split())


def is_programs(error: BaseException) -> bool:
    """Whether an error is the program's: Ctrl-C, a request to exit, or raised in a signal handler of Python code."""
    if not isinstance(error, Exception):
        return True
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    link = error.__traceback__
    while link is not None:
        if link.tb_frame.f_code in handlers:
            return True
        link = link.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """The code of a signal handler; None where it is not written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if callable(handler) and not hasattr(function, "__code__"):
        function = type(handler).__call__
    return getattr(function, "__code__", None)
