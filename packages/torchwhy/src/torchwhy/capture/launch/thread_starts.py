"""Reports when the program starts threads."""

from __future__ import annotations

import functools
import sysconfig
import threading
from collections.abc import Callable
from typing import Final

from torchwhy.capture.containment import Contain

__all__ = ["before_threads_start", "may_work"]


_LIBRARIES: Final = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def before_threads_start(act: Callable[[], None], contain: Contain) -> Callable[[], None]:
    """Call `act` before the main thread starts a thread that may do the program's work; return what undoes it.

    `contain`: see `StepWatch`.
    """
    original = threading.Thread.start

    @contain
    def starts(thread: threading.Thread) -> None:
        if may_work(thread) and threading.current_thread() is threading.main_thread():
            act()

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        starts(self)
        original(self)

    def undo() -> None:
        if threading.Thread.start is start:
            setattr(threading.Thread, name, original)

    name = "start"
    setattr(threading.Thread, name, start)
    return undo


def may_work(thread: threading.Thread) -> bool:
    """Whether a thread may run the program's code.

    Daemons of libraries are progress bars, log writers and feeders of queues, except for those of a pool of threads.
    """
    if not thread.daemon or type(thread).__module__ == "multiprocessing.dummy":
        return True
    function = getattr(thread, "_target", None) or type(thread).run
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    module = getattr(function, "__module__", None) or ""
    return not file.startswith(_LIBRARIES) and not module.startswith("torchwhy.")
