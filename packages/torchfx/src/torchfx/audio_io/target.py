"""Where an output is put when it is whole: over a path, or into a stream."""

from __future__ import annotations

import io
import os
import stat
import tempfile
from contextlib import suppress
from typing import Any, BinaryIO

from torchfx.audio_io.messages import file_errors, shown
from torchfx.audio_io.temporary import sync
from torchfx.errors import ArgumentTypeError, AudioFileError

__all__ = ["Target"]

COPIED = 1 << 20  # bytes copied into a stream at a time


class Target:
    """A path or a binary file object.

    A symbolic link stays one: what it points to is replaced. A path that exists and is no regular file, such as
    /dev/stdout, is written like a file object.

    Args:
        target: the path or the file object.

    Attributes:
        name: as messages show it.
        path: the path, or the file object's name; "" without one.
        folder: the folder of its temporary file: the path's, or the system's folder for temporary files.
        mode: the permissions its temporary file is made with, before the umask.

    Raises:
        ArgumentTypeError: neither a path nor a binary file object that can be written.
        AudioFileError: a folder, or a path in a folder that isn't there.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Check what can be checked before anything is written; leave no trace."""
        self.name = shown(target)
        self.folder = tempfile.gettempdir()
        self.mode = 0o600
        self._replaced: str | None = None  # the path to replace, without links
        self._stream: Any = None
        if isinstance(target, (str, bytes, os.PathLike)):
            self.path = os.fsdecode(target)
            self._check_path()
        else:
            named = getattr(target, "name", None)
            self.path = named if isinstance(named, str) else ""
            self._stream = target
            self._check_stream()

    def _check_path(self) -> None:
        if not os.path.basename(self.path):  # noqa: PTH119
            raise AudioFileError(f"cannot write {self.name or repr('')}: that names no file")
        with file_errors("write", self.name):
            before = _status(self.path)
            if before is not None and stat.S_ISDIR(before.st_mode):
                raise AudioFileError(f"cannot write {self.name}: it is a folder")
            if before is None or stat.S_ISREG(before.st_mode):
                self._replaced = os.path.realpath(self.path)
                self.folder = os.path.dirname(self._replaced)  # noqa: PTH120  (names may hold any bytes)
                os.stat(os.path.join(self.folder, ""))  # noqa: PTH116, PTH118  (the slash refuses a file)
            if before is None:
                self.mode = 0o666

    def _check_stream(self) -> None:
        stream = self._stream
        writable = getattr(stream, "writable", None)
        if not hasattr(stream, "write") or isinstance(stream, io.TextIOBase):
            kind = type(stream).__name__
            raise ArgumentTypeError(f"the target must be a path or a binary file object, got {stream!r} ({kind})")
        with file_errors("write", self.name):
            if callable(writable) and not writable():
                raise AudioFileError(f"cannot write {self.name}: it was opened for reading only")

    def receive(self, temporary: str) -> None:
        """Put a whole file in the target's place: at once over a path, from its position on into a stream."""
        if self._replaced is not None:
            _take_over(self._replaced, temporary)
            os.replace(temporary, self._replaced)  # noqa: PTH105
        elif self._stream is not None:
            _copy(temporary, self._stream)
        else:
            with open(self.path, "wb") as stream:  # noqa: PTH123
                _copy(temporary, stream)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None


def _take_over(path: str, temporary: str) -> None:
    """Give a file the permissions of the one it is going to replace, and its owner and group where that is allowed."""
    before = _status(path)
    if before is None:
        return
    now = os.stat(temporary)  # noqa: PTH116
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
            with suppress(OSError):
                os.chown(temporary, owner, group)
    if (before.st_mode ^ now.st_mode) & 0o777:
        os.chmod(temporary, stat.S_IMODE(before.st_mode) & 0o777)  # noqa: PTH101
    sync(temporary)  # what it replaces must not be gone before, should the power fail


def _copy(temporary: str, stream: Any) -> None:
    with open(temporary, "rb") as file:  # noqa: PTH123
        while block := file.read(COPIED):
            while block:
                written = stream.write(block)  # an unbuffered stream may take a part
                block = block[len(block) if written is None else written :]
    if hasattr(stream, "flush"):
        stream.flush()
