"""Whether Python stacks are worth recording: how many calls a step makes, and what PyTorch takes to record them.

PyTorch records calls by a profiling function of every thread, and removes those that the program has set.
"""

from __future__ import annotations

import cProfile
import ctypes
import os
import sys
import threading
from functools import cache
from types import FrameType
from typing import Any, Final

__all__ = ["ProfilingFunctionKept", "PythonCalls", "most_steps", "profiles_itself", "worth_recording"]

CALL_US: Final = 0.5  # PyTorch 2.13 takes 0.43 us to record a call of a Python function and 0.25 us of a built-in one
SHARE: Final = 0.05  # of a step that stacks may take
MOST: Final = 10_000  # calls of a step; each is an event of up to 1.7 kB in the file, which makes it slow to read
MOST_OF_WINDOW: Final = 4 * MOST


class PythonCalls:
    """Counts the calls that the current thread makes, of Python functions and of built-in ones.

    A program that has set a profiling function (`sys.setprofile`) is left alone.
    """

    def __init__(self) -> None:
        """Count from here on."""
        _watch_forks()
        self._calls = 0
        self._thread = threading.get_ident()
        self._counts = sys.getprofile() is None
        if self._counts:
            sys.setprofile(self._note)

    def end(self) -> int | None:
        """Return how many calls there were, or None where they could not be counted."""
        # A bound method is another object each time it is read, but an equal one.
        if not self._counts or threading.get_ident() != self._thread or sys.getprofile() != self._note:
            return None
        sys.setprofile(None)
        return self._calls

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in {"call", "c_call"}:
            self._calls += 1


@cache
def _watch_forks() -> None:
    """See that no child process continues counting."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_stop)


def _stop() -> None:
    if isinstance(getattr(sys.getprofile(), "__self__", None), PythonCalls):
        sys.setprofile(None)


def profiles_itself() -> bool:
    """Return whether the program has set a profiling function, in this thread or for new ones."""
    return _programs_function() is not None or threading.getprofile() is not None


def _programs_function() -> Any:
    function = sys.getprofile()
    return None if type(function).__name__ == "TraceContext" else function  # PyTorch's


class ProfilingFunctionKept:
    """Set the program's profiling function of this thread again when PyTorch has removed it (PyTorch 2.13 does).

    Those of other threads, and of profilers in C other than `cProfile`, cannot be set again. As many calls end after it
    is set again as began before it was removed, or `cProfile` would take one call for another: so this is no generator,
    and it is not removed by `sys.setprofile`.
    """

    def __enter__(self) -> None:
        """Remove the function."""
        own = _programs_function()
        self._own = own if callable(own) or isinstance(own, cProfile.Profile) else None
        if self._own is not None:
            ctypes.pythonapi.PyEval_SetProfile(None, None)

    def __exit__(self, *_: object) -> None:
        """Set it again."""
        if isinstance(self._own, cProfile.Profile):
            self._own.enable()
        elif self._own is not None:
            sys.setprofile(self._own)


def worth_recording(calls: int | None, step_us: float | None) -> bool:
    """Return whether stacks cost little in a step with this number of calls and this time.

    >>> worth_recording(1000, 20_000), worth_recording(1000, 5000), worth_recording(None, 20_000)
    (True, False, False)
    """
    return calls is not None and step_us is not None and calls <= MOST and calls * CALL_US <= SHARE * step_us


def most_steps(calls: int) -> int:
    """Return to how many steps a window may grow in which stacks are recorded, for a number of calls per step.

    >>> most_steps(100), most_steps(9000), most_steps(0)
    (400, 4, 40000)
    """
    return MOST_OF_WINDOW // max(calls, 1)
