"""Ask a running Python process to record itself: by `sys.remote_exec`, or because it listens."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

import torchwhy
from torchwhy.capture.attached import (
    ANSWER,
    READY,
    REQUEST,
    STOP,
    Progress,
    Request,
    listening_folder,
    started_at,
)
from torchwhy.capture.folder import add_file
from torchwhy.errors import TorchWhyError

__all__ = ["record_process"]

_LOOK_S: Final = 0.05
_ANSWER_S: Final = 30.0
"""How long a process may take to begin: its main thread must run Python."""

_WRITING_S: Final = 600.0
"""How long it may take to end and to write what it recorded."""

_SCRIPT: Final = """\
def torchwhy_attach(folder, path):
    import os, sys
    before = list(sys.path)
    sys.path.extend(path)
    try:
        from torchwhy.capture.attached import serve
        import torchwhy.capture.finish
        serve(folder)
    except BaseException as error:
        import json
        name = os.path.join(folder, "answer.json")
        text = f"{type(error).__name__}: {error}"
        with open(name + ".new", "w") as file:
            json.dump({"state": "failed", "text": "torchwhy cannot be imported there: " + text}, file)
        os.replace(name + ".new", name)
    finally:
        sys.path[:] = before
torchwhy_attach(@FOLDER@, @PATH@)
del torchwhy_attach
"""
"""The code that `sys.remote_exec` runs in the process, which may lack this package: then it is taken from here."""

_TOO_LATE: Final = """\
import shutil
shutil.rmtree(@FOLDER@, ignore_errors=True)
del shutil
"""
"""The script of a process that has not run the other one when this process gives up: it removes the folder."""


def record_process(pid: int, request: Request, say: Callable[[str], None] = lambda _: None) -> Progress:
    """Have a process record itself and return its answer; an interrupt ends the recording early and keeps it.

    Root takes on the user of the process for good, and so writes no file as root that this user can replace.

    Args:
        pid: number of the process.
        request: what it shall record.
        say: is called with what happens now.

    Raises:
        TorchWhyError: there is no such process, it cannot be reached, or it recorded nothing; the message says why.
    """
    with _reached(pid, request) as folder:
        try:
            _wait(pid, folder, {"recording", "done", "failed"}, _ANSWER_S)
            say(f"recording process {pid} for {request.seconds:g} s")
            answer = _wait(pid, folder, {"done", "failed"}, request.seconds + _WRITING_S)
        except KeyboardInterrupt:
            say("interrupted: waiting until the process has written what it recorded")
            (folder / STOP).touch()
            answer = _wait(pid, folder, {"done", "failed"}, _WRITING_S)
        except BaseException:
            (folder / STOP).touch()
            raise
    return answer


@contextmanager
def _reached(pid: int, request: Request) -> Iterator[Path]:
    """The folder by which the process was given the request."""
    user = _user_of(pid)
    data = msgspec.json.encode(request).decode()
    listening = listening_folder(pid, user)
    if _listens(listening, pid):
        _become(pid, user)
        if (listening / REQUEST).exists():
            raise TorchWhyError(f"process {pid} has another request already")
        for name in (STOP, ANSWER):
            (listening / name).unlink(missing_ok=True)
        add_file(listening / REQUEST, data)
        try:
            yield listening
        finally:
            (listening / REQUEST).unlink(missing_ok=True)
        return
    folder = Path(tempfile.mkdtemp(prefix="torchwhy-pid-"))
    script = folder / "attach.py"
    entered = False
    try:
        add_file(folder / REQUEST, data)
        text = _SCRIPT.replace("@FOLDER@", repr(str(folder))).replace("@PATH@", repr(_path()))
        script.write_text(text, encoding="utf-8")
        _give(user, folder / REQUEST, script, folder)
        try:
            _execute(pid, script)
            entered = True
        finally:
            _become(pid, user)
        yield folder
    finally:
        waits = entered and (folder / REQUEST).exists() and not (folder / ANSWER).exists() and _lives(pid)
        if waits:  # Python reports an error in the process if the script is missing
            script.write_text(_TOO_LATE.replace("@FOLDER@", repr(str(folder))), encoding="utf-8")
            (folder / REQUEST).unlink(missing_ok=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _give(user: int | None, *paths: Path) -> None:
    if user is not None and user != os.getuid():
        for path in paths:
            with suppress(PermissionError):  # then the process is out of reach anyway
                os.chown(path, user, -1)


def _become(pid: int, user: int | None) -> None:
    """Have no more rights than the process."""
    if user is None or user == os.getuid():
        return
    if os.getuid():
        raise TorchWhyError(f"process {pid} belongs to another user: run this as that user, or as root")
    os.setgroups([])
    with suppress(OSError):
        os.setgid(Path(f"/proc/{pid}").stat().st_gid)
    os.setuid(user)


def _path() -> list[str]:
    """Where this package and what it needs are."""
    homes = [Path(torchwhy.__file__).parents[1], *(Path(place) for place in sys.path if place.endswith("-packages"))]
    return list(dict.fromkeys(map(str, homes)))


def _execute(pid: int, script: Path) -> None:
    """Have the process run a script of Python's in its main thread."""
    execute: Any = getattr(sys, "remote_exec", None)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if execute is None:
        raise TorchWhyError(
            f"process {pid} does not listen, and this Python {version} cannot enter another process: call "
            "torchwhy.listen() in the program before, or use Python 3.14 or newer for both"
        )
    try:
        execute(pid, str(script))
    except ProcessLookupError as error:
        raise TorchWhyError(f"there is no process {pid}") from error
    except PermissionError as error:
        raise TorchWhyError(
            f"process {pid} may not be entered ({error.strerror or error}): use the same user and sudo, or allow it "
            "with CAP_SYS_PTRACE or kernel.yama.ptrace_scope=0; or call torchwhy.listen() in the program"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise TorchWhyError(
            f"process {pid} cannot be entered ({error}): it must run Python {version} as this one does, without "
            "PYTHON_DISABLE_REMOTE_DEBUG; or call torchwhy.listen() in the program"
        ) from error


def _listens(folder: Path, pid: int) -> bool:
    """Whether this very process listens there, and not one that had its number before."""
    try:
        ready = json.loads((folder / READY).read_text(encoding="utf-8"))
        return bool(ready["started"] == started_at(pid))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _user_of(pid: int) -> int | None:
    """Whose a process is; None where the system does not show that."""
    if pid <= 0 or not _lives(pid):
        raise TorchWhyError(f"there is no process {pid}")
    with suppress(OSError):
        return Path(f"/proc/{pid}").stat().st_uid
    return None


def _lives(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill(pid, 0) would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _wait(pid: int, folder: Path, states: set[str], seconds: float) -> Progress:
    """Return the answer once it says one of these."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError, msgspec.DecodeError):
            answer = msgspec.json.decode((folder / ANSWER).read_bytes(), type=Progress)
            if answer.state == "failed":
                raise TorchWhyError(f"process {pid} recorded nothing: {answer.text}")
            if answer.state in states:
                return answer
        if not _lives(pid):
            raise TorchWhyError(f"process {pid} has ended")
        time.sleep(_LOOK_S)
    raise TorchWhyError(
        f"process {pid} did not answer within {seconds:g} s: its main thread runs no Python, for instance because it "
        "waits in a call of C; nothing is recorded later"
    )
