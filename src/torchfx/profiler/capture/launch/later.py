"""Does something in the main thread after a while, whatever that thread is doing then."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

__all__ = ["after"]

_PendingCall = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def after(seconds: float, act: Callable[[], None]) -> Callable[[], None]:
    """Call `act` in the main thread, between two bytecodes, after some seconds; return what cancels that.

    The profiler must be stopped in the thread that started it. A signal would do that too, but interrupt system calls
    of the program and clash with its own.
    """

    def pending(_: object) -> int:
        act()
        return 0

    call = _PendingCall(pending)
    timer = threading.Timer(seconds, ctypes.pythonapi.Py_AddPendingCall, (call, None))
    timer.daemon = True
    timer.start()
    return timer.cancel
