"""Does something in the main thread as soon as it is due, whatever that thread is doing then.

A main thread that waits for a lock does nothing else: what any thread may do is done `anywhere`.
"""

from __future__ import annotations

import ctypes
import math
import re
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Final

from torchwhy.capture.containment import contained

__all__ = ["allocated_bytes", "bytes_of_all_arenas", "heap_bytes", "raise_after", "whenever"]

EVERY_S: Final = 0.01
"""Between looks, at least."""

_REST: Final = 20
"""For each second that a look takes, seconds until the next look: on a heap in many pieces a look takes
milliseconds."""


def whenever(
    due: Callable[[], bool],
    act: Callable[[], None],
    failed: Callable[[Exception], None],
    anywhere: bool = False,
    every_s: float = EVERY_S,
    left_s: Callable[[], float] = lambda: math.inf,
) -> Callable[[], None]:
    """Call `act` in the main thread, between two bytecodes, each time something is due; return what cancels that.

    A recording of one thread must be stopped in that thread. A signal would do that too, but interrupt system calls
    of the program and clash with its own.

    Args:
        due: is asked in a separate thread.
        act: is called once for each time that `due` returned true while no such call waits for the main thread.
        failed: is given an error of any of these functions.
        anywhere: call `act` in the thread that asks instead.
        every_s: how often to ask, in seconds.
        left_s: seconds until it is due in any case. However long a look took, the next one is not later.
    """
    cancelled = threading.Event()
    act = contained(act, failed)
    tell = act if anywhere else _Pending(act).ask

    def watch() -> None:
        wait_s = every_s
        while not cancelled.wait(wait_s):
            before = time.thread_time()
            is_due = due()
            wait_s = max(every_s, min(left_s(), _REST * (time.thread_time() - before)))
            if is_due:
                tell()

    threading.Thread(target=contained(watch, failed), daemon=True).start()
    return cancelled.set


def raise_after(code: CodeType, error: BaseException) -> None:
    """Raise an error in the main thread when it has left a function whose errors Python only prints."""

    def act() -> None:
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        if frame is None:
            raise error
        pending.ask()

    pending = _Pending(act)
    pending.ask()


_announced: list[_Pending] = []
"""Every call that was ever requested: the interpreter may still make one that has been cancelled."""


class _Pending:
    """A call in the main thread, between two bytecodes.

    The interpreter calls `PyObject_IsTrue` with this object, so an error, such as of Ctrl-C meanwhile, is raised in the
    main thread. Of a callback of ctypes it would only be printed.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act, self._waiting = act, False
        _announced.append(self)

    def ask(self) -> None:
        """Have it made, unless it is requested already."""
        if not self._waiting:
            self._waiting = True
            call = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
            if ctypes.pythonapi.Py_AddPendingCall(call, ctypes.py_object(self)):  # the interpreter has too many already
                self._waiting = False

    def __bool__(self) -> bool:
        """Make the call."""
        self._waiting = False
        self._act()
        return False


class _Heap(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )
    uordblks: int
    hblkhd: int


def bytes_of_all_arenas() -> int | None:
    """Bytes that malloc has handed out to all threads except for large blocks; None without glibc.

    `mallinfo2` sees the main thread's arena only. This takes up to 70 ms on a heap in 240,000 pieces.
    """
    try:
        library = ctypes.CDLL(None)
        library.malloc_info  # noqa: B018  (looks it up)
        library.open_memstream.restype = ctypes.c_void_p
    except (AttributeError, OSError, TypeError):
        return None
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(library.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    library.malloc_info(0, stream)
    library.fclose(stream)
    totals = ctypes.string_at(text, size.value).rpartition(b"</heap>")[2]
    library.free(text)
    found = {kind: int(amount) for kind, amount in _TOTAL.findall(totals)}
    return found[b"current"] - found[b"fast"] - found[b"rest"]


_TOTAL = re.compile(rb'type="(fast|rest|current)".*? size="(\d+)"')


def heap_bytes() -> int | None:
    """Bytes handed out by malloc except for separate large blocks, such as tensors; None without glibc 2.33."""
    found = _heap()
    return None if found is None else found.uordblks


def allocated_bytes() -> int | None:
    """Bytes handed out by malloc, large blocks included; None without glibc 2.33. It takes some microseconds."""
    found = _heap()
    return None if found is None else found.uordblks + found.hblkhd


def _heap() -> _Heap | None:
    try:
        ask = ctypes.PyDLL(None).mallinfo2  # keeps Python's lock, which a busy thread gives back after 5 ms
    except (AttributeError, OSError, TypeError):
        return None
    ask.restype = _Heap
    found: _Heap = ask()
    return found
