"""The recorded side of `torchwhy profile --pid`: a program records itself for a while at another process's request.

The two speak by files in a folder that only their user may enter: `request.json`, `stop`, `answer.json`. Nothing here
raises into the program, and a recording ends by itself, even if the process that requested it ends.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from torchwhy.capture.advice import Spelling
from torchwhy.capture.folder import add_file
from torchwhy.capture.launch.thread_starts import may_work
from torchwhy.capture.main_thread import whenever
from torchwhy.capture.open_calls import inside_pytorch, inside_transform
from torchwhy.capture.options import Options
from torchwhy.capture.result import STILL_RUNNING
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.session import Session
from torchwhy.capture.whole_run import Limits, WholeRun
from torchwhy.errors import TorchWhyError

__all__ = [
    "ANSWER",
    "READY",
    "REQUEST",
    "STOP",
    "Progress",
    "Request",
    "listen",
    "listening_folder",
    "serve",
    "started_at",
]

REQUEST: Final = "request.json"
STOP: Final = "stop"
ANSWER: Final = "answer.json"
READY: Final = "ready.json"

_LOOK_S: Final = 0.2
"""How often a program that listens looks for a request: two looks take about 10 us."""

_MAIN_THREAD_S: Final = 2.0
"""A main thread that runs no Python for this time (s) waits for other threads, which are recorded without it."""

_NO_LIMIT_S: Final = 1e6


class Request(msgspec.Struct, frozen=True):
    """The request: the run's folder, how long, and `torchwhy.capture.options.Options`."""

    path: str
    seconds: float
    shapes: bool = True
    memory: bool = False
    stacks: bool = False
    flops: bool = False
    power: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How far it is: "recording", "done" or "failed".

    Attributes:
        state: one of these.
        folder: the run's; "" until there is one, and where nothing was recorded.
        text: the report on the recording, or why it failed.
    """

    state: str
    folder: str = ""
    text: str = ""


def listening_folder(pid: int, user: int | None = None) -> Path:
    """Where a process looks for requests.

    Args:
        pid: its number.
        user: whose it is; None: this process's.
    """
    user = getattr(os, "getuid", lambda: 0)() if user is None else user
    return Path(tempfile.gettempdir()) / f"torchwhy-{user}" / str(pid)


def started_at(pid: int | str) -> str:
    """When a process began, in the kernel's units: with its number that names it for good; "" outside Linux."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


_listening: list[threading.Thread] = []


def listen() -> None:
    """Let `torchwhy profile --pid` record this process later. Until then a thread looks for a request 5 times a second.

    Only the same user and root can send a request. Python 3.14 needs no such call. A second call does nothing.

    Raises:
        TorchWhyError: the folder for requests belongs to somebody else, or others may enter it.
        OSError: it cannot be made.
    """
    if _listening and _listening[0].is_alive():
        return
    folder = listening_folder(os.getpid())
    for place in (folder.parent, folder):
        place.mkdir(mode=0o700, exist_ok=True)
        _check_private(place)
    for name in (REQUEST, STOP, ANSWER):
        (folder / name).unlink(missing_ok=True)  # of an earlier process with this number
    add_file(folder / READY, json.dumps({"started": started_at("self"), "python": sys.version.split()[0]}))
    _listening[:] = [threading.Thread(target=_listen, args=(folder, os.getpid()), name="torchwhy-listen", daemon=True)]
    _listening[0].start()
    atexit.register(_leave, folder, os.getpid())


def _check_private(folder: Path) -> None:
    """Refuse a folder that somebody else made, or may change."""
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise TorchWhyError(f"{folder} must be a folder that belongs to this user, and that no other user may enter")


def _listen(folder: Path, process: int) -> None:
    while os.getpid() == process and (folder / READY).exists():
        if (folder / REQUEST).exists():
            _serve(folder)
        time.sleep(_LOOK_S)


def _leave(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def serve(folder: str) -> None:
    """Record what a request in a folder asks for, from a thread of ours; return at once."""
    threading.Thread(target=_serve_once, args=(Path(folder),), name="torchwhy-attached", daemon=True).start()


def _serve_once(folder: Path) -> None:
    """Serve the request of a folder that is made for it; remove the folder if the request was withdrawn meanwhile."""
    if (folder / REQUEST).exists():
        _serve(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _serve(folder: Path) -> None:
    """Serve one request; any error becomes the answer."""
    try:
        data = (folder / REQUEST).read_bytes()
        (folder / REQUEST).unlink()
        answer = _Attached(msgspec.json.decode(data, type=Request), folder).run()
    except Exception as error:  # noqa: BLE001 - the program must not notice any mistake of ours
        answer = Progress("failed", text=f"{type(error).__name__}: {error}")
    _tell(folder, answer)


def _tell(folder: Path, answer: Progress) -> None:
    try:
        add_file(folder / ANSWER, msgspec.json.encode(answer).decode())
    except OSError:
        return  # who asked has gone


class _Attached:
    """One recording of a program that is in the middle of its work."""

    def __init__(self, request: Request, folder: Path) -> None:
        if "torch" not in sys.modules:
            raise TorchWhyError("the process has not imported PyTorch")
        self._request, self._folder = request, folder
        recorded = {name: getattr(request, name) for name in ("shapes", "memory", "stacks", "flops", "power")}
        self._options = Options(**recorded)
        command = [sys.executable, *getattr(sys, "argv", [])]
        self._session = Session(
            Path(request.path),
            Schedule.of(3, 1, None, 1),
            self._options,
            command,
            Spelling("--{} {}", " "),
            launched=True,
        )
        remedy = "torchwhy.profile around its loop records steps"
        self._whole = WholeRun(self._session, Limits(_NO_LIMIT_S), "", "--seconds records more", remedy)
        self._begun = threading.Lock()

    def run(self) -> Progress:
        """Begin, wait, end, write; after an error, record no more."""
        try:
            return self._record()
        except Exception:
            self._whole.end()
            self._in_main_thread(self._abandon, _MAIN_THREAD_S)
            raise

    def _abandon(self) -> None:
        self._session.abandon(STILL_RUNNING, "")

    def _record(self) -> Progress:
        if not self._in_main_thread(self._begin, _MAIN_THREAD_S) and self._begun.acquire(blocking=False):
            self._begin_here()
        end = time.monotonic() + self._request.seconds
        _tell(self._folder, Progress("recording"))
        while time.monotonic() < end and self._is_wanted() and not self._session.stopped:
            time.sleep(0.02)
        self._whole.end()
        if self._whole.has_threads:
            self._session.stop()
        else:
            self._in_main_thread(self._session.stop, None)
        self._whole.tell()
        capture = self._session.close(STILL_RUNNING)
        folder = str(capture.folder) if capture is not None and capture.folder is not None else ""
        return Progress("done", folder, str(capture))

    def _is_wanted(self) -> bool:
        """Whether the process that asked has neither ended the recording nor removed the folder."""
        return self._folder.exists() and not (self._folder / STOP).exists()

    def _begin(self) -> None:
        if self._begun.acquire(blocking=False):
            self._begin_here()

    def _begin_here(self) -> None:
        self._session.open()
        self._whole.record(self._options)
        working = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
        if any(may_work(thread) for thread in working):
            self._whole.record_threads()

    def _in_main_thread(self, act: Any, seconds: float | None) -> bool:
        """Call something in the main thread, not inside a call into PyTorch; return whether that was done in time."""
        done = threading.Event()
        errors: list[Exception] = []

        def attempt() -> None:
            if done.is_set() or inside_pytorch() or inside_transform():
                return
            try:
                act()
            finally:
                done.set()

        def failed(error: Exception) -> None:
            errors.append(error)
            done.set()

        cancel = whenever(lambda: not done.is_set(), attempt, failed)
        try:
            in_time = done.wait(seconds)
        finally:
            cancel()
        if errors:
            raise errors[0]
        return in_time
