"""Samples of a program's Python stack, every few milliseconds, for programs whose stacks cost too much to record."""

from __future__ import annotations

import _thread
import gc
import linecache
import os
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from torchwhy.capture.containment import contained
from torchwhy.wording import working_folder

__all__ = ["DEEPEST", "IMPORTING", "RECORDING", "StackSampler", "StackSamples", "name_places"]

EVERY_S: Final = 0.002
"""Between samples; about 8 ms where several threads of Python compute without a pause, since they give their lock away
every 5 ms. A loop in Python was measured to take 0.1 to 1.3% longer.
"""
SWITCH_S: Final = 0.00001
"""What Python's switch interval becomes while no other thread runs. With the usual 5 ms, the sample of a call that
holds Python's lock for less is taken only where the program next releases it by itself: of a loop that spent 96% of its
time in `json.loads` and the rest in an operator, 82% of the samples named the operator; with 10 us, 9%. A loop in
Python took 0.8% longer, within what such a measurement varies.
"""
MOST: Final = 8000  # samples; when there are more, every second one goes and the others come half as often
DEEPEST: Final = 60  # frames of a stack, from the innermost
IMPORTING: Final = "_find_and_load"
"""The function of Python's own that imports a module."""

RECORDING: Final = f"torchwhy{os.sep}capture{os.sep}session.py"
"""The file through which all of the recorder is called."""

_LIBRARIES: Final = ("<frozen ", sysconfig.get_path("stdlib") + os.sep)
_PACKAGES: Final = re.compile(r"[/\\](site|dist)-packages[/\\]")
_watching: Final[set[int]] = set()
"""The threads of all samplers at work."""


@dataclass
class StackSamples:
    """Stacks of one thread.

    Attributes:
        frames: "train.py(34): step", each once; the line is the one that ran.
        lines: the source of each of them, "" where there is no file.
        stacks: places in `frames`, innermost first; each stack once.
        times_ns: when each sample was taken, nanoseconds since 1970.
        which: the stack of each.
        thread: the thread's number in the trace; None where that is not known to be the system's number.
    """

    frames: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    stacks: list[list[int]] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    which: list[int] = field(default_factory=list)
    thread: int | None = None


class StackSampler:
    """Looks at the thread that makes it, from another one, until `end`.

    `threading` does not list the other thread: programs count the threads listed there, and wait for them.

    Args:
        every_s: seconds between samples; `EVERY_S` by default.
        whole: whether stacks are kept with all their frames, `DEEPEST` at most; else without those of installed
            packages and of Python's own library but `IMPORTING` and `RECORDING`, at any depth: an import is 100 frames
            deep.
    """

    def __init__(self, every_s: float | None = None, *, whole: bool = True) -> None:
        """Begin."""
        self._thread = threading.get_ident()
        self._number = threading.get_native_id() if sys.platform == "linux" else None
        self._whole = whole
        self._stacks: dict[tuple[tuple[CodeType, int], ...], int] = {}
        self._taken: list[tuple[int, int]] = []
        self._every = EVERY_S if every_s is None else every_s
        self._trouble: Exception | None = None
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(contained(self._watch, self._fail), ())

    def stop(self) -> None:
        """Look no more."""
        if self._ended.locked():
            self._ended.release()

    def end(self) -> StackSamples:
        """Stop, and return what was seen, or raise what went wrong meanwhile."""
        self.stop()
        if self._trouble is not None:
            raise self._trouble
        return self._named(list(self._taken))

    def _watch(self) -> None:
        switching, this = _SwitchInterval(), threading.get_ident()
        _watching.add(this)
        try:
            self._look(switching)
        finally:
            switching.restore()
            _watching.discard(this)

    def _fail(self, error: Exception) -> None:
        self._trouble = error

    def _look(self, switching: _SwitchInterval) -> None:
        while not self._ended.acquire(timeout=self._every):
            with _collections.waiting():
                frames = sys._current_frames()
                frame = frames.get(self._thread)
                switching.adapt(len(frames.keys() - _watching))
                del frames
                if frame is None:
                    break
                stack = tuple(islice(_walk(frame), DEEPEST) if self._whole else filter(_may_be_own, _walk(frame)))
                del frame
            self._taken.append((time.time_ns(), self._stacks.setdefault(stack, len(self._stacks))))
            if len(self._taken) >= MOST:
                self._taken, self._every = self._taken[::2], self._every * 2

    def _named(self, taken: list[tuple[int, int]]) -> StackSamples:
        frames, lines, stacks = name_places(list(self._stacks))
        when, which = [when for when, _ in taken], [stack for _, stack in taken]
        return StackSamples(frames, lines, stacks, when, which, thread=self._number)


def name_places(stacks: Sequence[Sequence[tuple[CodeType, int]]]) -> tuple[list[str], list[str], list[list[int]]]:
    """Return the frames of stacks, the source of each, and the stacks as places in them: see `StackSamples`.

    Frames are named as PyTorch's profiler writes them: paths without the folder they were imported from.

    Args:
        stacks: each as code and number of the line that runs, innermost first.
    """
    frames: list[str] = []
    lines: list[str] = []
    here = working_folder() or Path()
    folders = sorted((f"{here / each}{os.sep}" for each in sys.path), key=len, reverse=True)
    known: dict[tuple[CodeType, int], int] = {}
    for place in dict.fromkeys(place for stack in stacks for place in stack):
        known[place] = len(known)
        code, line = place
        file = next((code.co_filename[len(one) :] for one in folders if code.co_filename.startswith(one)), "")
        frames.append(f"{file or code.co_filename}({line}): {code.co_name}")
        lines.append(linecache.getline(code.co_filename, line).strip()[:120])
    return frames, lines, [[known[place] for place in stack] for stack in stacks]


class _Collections:
    """Garbage collections, which wait while a sampler reads frames, in Python 3.11.

    That version makes a frame's object when it is read. A collection that begins there calls Python, which lets other
    threads run on: one frees the frame, or waits with Python's lock for the list of threads, which
    `sys._current_frames` holds, for ever. Later versions collect elsewhere.

    If the program disables collections just then, it is overruled.
    """

    def __init__(self) -> None:
        self._reading, self._wait = threading.Lock(), False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let none begin."""
        if sys.version_info[:2] != (3, 11):
            yield
            return
        with self._reading:
            self._wait = gc.isenabled()
            gc.disable()
            try:
                yield
            finally:
                self.resume()

    def resume(self) -> None:
        """Let them begin again, if they were enabled."""
        if self._wait:
            gc.enable()
        self._wait = False

    def forked(self) -> None:
        """Do the same in a child process, in which no sampler runs that would."""
        self._reading = threading.Lock()
        self.resume()


_collections: Final = _Collections()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collections.forked)


class _SwitchInterval:
    """Python's switch interval: `SWITCH_S` while the program has one thread, else as the program has it."""

    def __init__(self) -> None:
        self._before, self._ours = sys.getswitchinterval(), 0.0

    def adapt(self, threads: int) -> None:
        if threads > 1:  # without those of samplers
            self.restore()
        elif not self._ours:
            self._before = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_S, self._before))
            self._ours = sys.getswitchinterval()

    def restore(self) -> None:
        if self._ours == sys.getswitchinterval():  # otherwise the program has set another one meanwhile
            sys.setswitchinterval(self._before)
        self._ours = 0.0


def _walk(frame: FrameType | None) -> Iterator[tuple[CodeType, int]]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
        frame = frame.f_back


def _may_be_own(place: tuple[CodeType, int]) -> bool:
    file = place[0].co_filename
    return (
        place[0].co_name == IMPORTING
        or RECORDING in file
        or not (file.startswith(_LIBRARIES) or _PACKAGES.search(file))
    )
