"""Does something in the main thread after a while, or when memory has grown, whatever that thread is doing then.

A main thread that waits for a lock does nothing else: what any thread may do is done `anywhere`.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable

__all__ = ["after", "allocated_bytes", "bytes_of_all_arenas", "whenever_memory_grows"]

_PendingCall = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def after(seconds: float, act: Callable[[], None], anywhere: bool = False) -> Callable[[], None]:
    """Call `act` in the main thread, between two bytecodes, after some seconds; return what cancels that.

    A recording of one thread must be stopped in that thread. A signal would do that too, but interrupt system calls
    of the program and clash with its own.

    Args:
        seconds: from now.
        act: is called once.
        anywhere: call it in a thread of its own instead.
    """
    timer = threading.Timer(seconds, act if anywhere else _in_main_thread(act))
    timer.daemon = True
    timer.start()
    return timer.cancel


def whenever_memory_grows(
    by: int, act: Callable[[], None], used: Callable[[], int | None] | None = None, every_s: float = 0.1,
    anywhere: bool = False,
) -> Callable[[], None]:  # fmt: skip
    """Call `act` likewise each time this process's heap has grown by so many bytes; return what cancels that.

    Args:
        by: bytes, counted from now; then four times as many from where it was when `act` was called, and so on.
        act: is called in the main thread.
        used: returns the bytes in use; tests pass their own. Where None is returned, nothing is watched.
        every_s: how often to look, in seconds.
        anywhere: call `act` in the thread that looks instead.
    """
    used = used or _heap_bytes
    start = used()
    cancelled = threading.Event()
    tell = act if anywhere else _in_main_thread(act)

    def watch(base: int, by: int) -> None:
        while not cancelled.wait(every_s):
            now = used() or 0
            base = min(base, now)
            if now - base >= by:
                base, by = now, 4 * by
                tell()

    if start is not None:
        threading.Thread(target=watch, args=(start, by), daemon=True).start()
    return cancelled.set


_announced: list[Callable[[object], int]] = []
"""Every call that was ever asked for: the interpreter may still make one that has been cancelled."""


def _in_main_thread(act: Callable[[], None]) -> Callable[[], None]:
    def pending(_: object) -> int:
        act()
        return 0

    call = _PendingCall(pending)
    _announced.append(call)
    return lambda: ctypes.pythonapi.Py_AddPendingCall(call, None)


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
    """Bytes that malloc has handed out to all threads but for large blocks; None without glibc.

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


def _heap_bytes() -> int | None:
    """Bytes handed out by malloc but for large blocks of their own, such as tensors; None without glibc 2.33."""
    found = _heap()
    return None if found is None else found.uordblks


def allocated_bytes() -> int | None:
    """Bytes handed out by malloc, large blocks included; None without glibc 2.33. It takes some microseconds."""
    found = _heap()
    return None if found is None else found.uordblks + found.hblkhd


def _heap() -> _Heap | None:
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    ask.restype = _Heap
    found: _Heap = ask()
    return found
