"""How a program ended, and ending this process the same way."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

__all__ = ["Ending", "on_termination", "run_to_end", "wait_for_threads"]

OWN_FOLDER = str(Path(__file__).parents[1])  # of the recorder


@dataclass(frozen=True)
class Ending:
    """How a program ended.

    Attributes:
        text: "finished", "exit 7", "ValueError", "SIGINT".
        status: the exit status `python` would have left with.
        signal: the signal it died of; None where it exited.
    """

    text: str
    status: int
    signal: int | None = None

    def follow(self) -> None:
        """Die of the signal the program died of, so that whoever waits for it sees the same; otherwise return."""
        if self.signal is not None:
            _finalize()
            signal.signal(self.signal, signal.SIG_DFL)
            os.kill(os.getpid(), self.signal)

    def follow_in_child(self) -> None:
        """Leave a forked child: after a profiler, PyTorch hangs in its ordinary exit (seen in 2.13)."""
        _finalize()
        os._exit(self.status)


def _finalize() -> None:
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()


def run_to_end(program: Callable[[], None]) -> Ending:
    """Run a program and its threads, and show what `python` would show of its end."""
    try:
        program()
        wait_for_threads()
    except SystemExit as stop:
        return _exited(stop.code)
    except KeyboardInterrupt as stop:
        _show(stop)
        return Ending("SIGINT", 128 + signal.SIGINT, signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  (the program's own error, whatever it is; python shows it and exits with 1)
        _show(error)
        return Ending(type(error).__name__, 1)
    return Ending("finished", 0)


def wait_for_threads() -> None:
    """Wait as python does at its end: executors are shut down first, or their threads never end."""
    for tell in reversed(getattr(threading, "_threading_atexits", [])):
        tell()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def on_termination(act: Callable[[Ending], None]) -> None:
    """Act when SIGTERM comes, or SIGHUP from a terminal that closes, then die of it; again if it comes meanwhile.

    A program that handles one itself replaces this; one that is ignored, as under nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    process = os.getpid()

    def terminated(number: int, frame: object) -> None:
        try:
            if os.getpid() == process:  # forked children inherit the handler, and only die
                act(Ending(signal.Signals(number).name, 128 + number, number))
        finally:  # a terminal that is gone takes no report
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, terminated)


def _exited(code: object) -> Ending:
    if code is None:
        return Ending("finished", 0)
    if isinstance(code, int):
        return Ending(f"exit {code}" if code else "finished", code & 0xFF)
    print(code, file=sys.stderr)
    return Ending("exit 1", 1)


def _show(error: BaseException) -> None:
    """Print the traceback as if this package were not in it."""
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = _without_own(link.__traceback__)
        link = link.__cause__ or link.__context__
    sys.excepthook(type(error), error, error.__traceback__)


def _without_own(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
            kept.append(traceback)
        traceback = traceback.tb_next
    if not kept:  # a script that is no Python has no frame
        return None
    for outer, inner in zip(kept, [*kept[1:], None], strict=True):
        outer.tb_next = inner
    return kept[0]
