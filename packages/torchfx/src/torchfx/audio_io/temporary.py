"""Temporary files, named after the process that writes them, so that those of dead processes can be removed."""

from __future__ import annotations

import functools
import os
import platform
import re
import zlib
from contextlib import suppress
from pathlib import Path

__all__ = ["create", "remove", "sync"]

_living: set[str] = set()  # what this process writes now
_swept: set[str] = set()  # folders looked through already


def create(folder: str, suffix: str, mode: int) -> str:
    """Make an empty file, `.torchfx-<process>-<host>-<random><suffix>`, and return its path.

    The first call for a folder removes the files there whose processes are dead.
    """
    if folder not in _swept:
        _swept.add(folder)
        _sweep(folder)
    name = f".torchfx-{os.getpid()}-{_host()}-{os.urandom(4).hex()}{suffix}"
    path = os.path.join(folder, name)  # noqa: PTH118  (libsndfile takes strings)
    _living.add(path)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
    except BaseException:
        remove(path)
        raise
    return path


def remove(path: str) -> None:
    """Remove a temporary file, if it is still there."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    _living.discard(path)


def sync(path: str) -> None:
    """Wait until a file is on the disk, if its file system supports it."""
    with suppress(OSError):
        file = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _sweep(folder: str) -> None:
    """Remove what dead processes of this host left behind; whatever cannot be removed stays."""
    if os.name == "nt":  # no call there asks for a process without harming it
        return
    pattern = re.compile(rf"\.torchfx-([1-9]\d*)-{_host()}-[0-9a-f]+(\.\w+)?")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if match is not None and entry.path not in _living and not _is_alive(int(match[1])):
                with suppress(OSError):
                    Path(entry.path).unlink()


def _is_alive(process: int) -> bool:
    """Say whether another process has this number; this one's own files are known, its number may be used again."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to somebody else, or is no process' number
        return True
    return True


@functools.cache
def _host() -> str:
    """Return a short name of where this process' number is unique: the host since its start, and the PID namespace.

    Other hosts see the same folders through a network, and containers through a mount.
    """
    where = [platform.node()]
    with suppress(OSError):
        where.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with suppress(OSError):
        where.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  (no path, but "pid:[4026531836]")
    return f"{zlib.crc32(repr(where).encode('utf-8', 'replace')):08x}"
