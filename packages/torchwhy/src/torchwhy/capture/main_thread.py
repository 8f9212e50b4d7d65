"""Does something in the main thread after a while, or when memory has grown, whatever that thread is doing then."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

__all__ = ["after", "whenever_memory_grows"]

_PendingCall = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def after(seconds: float, act: Callable[[], None]) -> Callable[[], None]:
    """Call `act` in the main thread, between two bytecodes, after some seconds; return what cancels that.

    The profiler must be stopped in the thread that started it. A signal would do that too, but interrupt system calls
    of the program and clash with its own.
    """

    call = _pending(act)
    timer = threading.Timer(seconds, ctypes.pythonapi.Py_AddPendingCall, (call, None))
    timer.daemon = True
    timer.start()
    return timer.cancel


def whenever_memory_grows(
    by: int, act: Callable[[], None], used: Callable[[], int | None] | None = None, every_s: float = 0.1
) -> Callable[[], None]:
    """Call `act` likewise each time this process's heap has grown by so many bytes; return what cancels that.

    Args:
        by: bytes, counted from now; then four times as many from where it was when `act` was called, and so on.
        act: is called in the main thread.
        used: returns the bytes in use; tests pass their own. Where None is returned, nothing is watched.
        every_s: how often to look, in seconds.
    """
    used = used or _heap_bytes
    start = used()
    cancelled = threading.Event()
    called = _pending(act)

    def watch(base: int, by: int) -> None:
        while not cancelled.wait(every_s):
            now = used() or 0
            base = min(base, now)
            if now - base >= by:
                base, by = now, 4 * by
                ctypes.pythonapi.Py_AddPendingCall(called, None)

    if start is not None:
        threading.Thread(target=watch, args=(start, by), daemon=True).start()
    return cancelled.set


_announced: list[Callable[[object], int]] = []
"""Every call that was ever asked for: the interpreter may still make one that has been cancelled."""


def _pending(act: Callable[[], None]) -> Callable[[object], int]:
    def pending(_: object) -> int:
        act()
        return 0

    call = _PendingCall(pending)
    _announced.append(call)
    return call


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


def _heap_bytes() -> int | None:
    """Bytes handed out by malloc but for large blocks of their own, such as tensors; None without glibc 2.33."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    ask.restype = _Heap
    return int(ask().uordblks)
