"""Where an input comes from: a path, a file object, or a pipe."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Literal, NamedTuple

from torchfx.audio_io.messages import file_errors, shown
from torchfx.audio_io.mpeg import Frames, Spliced, counted
from torchfx.errors import ArgumentTypeError, AudioFileError

__all__ = ["Source", "library_path", "may_be_mp3"]

START = 1 << 16  # bytes: where tags in front of the samples are


class Chunks(NamedTuple):
    """The chunks of a WAV or an AIFF.

    Attributes:
        promised: size of the chunk of samples, bytes; 0 without one.
        available: how many bytes follow its header.
        with_id3: whether there is a chunk of ID3 tags.
    """

    promised: int
    available: int
    with_id3: bool


class Source:
    """A path or a binary file object, checked and ready for libsndfile.

    What cannot be sought in, such as a pipe, is copied to a temporary file first.

    Args:
        source: the path or the file object, which is read from its current position on.

    Attributes:
        name: as messages show it.
        opened: what soundfile opens, a path or a file object.

    Raises:
        ArgumentTypeError: neither a path nor a binary file object that can be read.
        AudioFileError: nothing there, a folder, a device, or no bytes.
    """

    def __init__(self, source: str | os.PathLike[str] | BinaryIO) -> None:
        """Check the source; a pipe is read to its end."""
        self.name = shown(source)
        self._stream: _Stream | None = None
        self._spooled: Any = None
        self._handle: Any = None
        try:
            with file_errors("read", self.name):
                if isinstance(source, (str, bytes, os.PathLike)):
                    self._open_path(os.fsdecode(source))
                else:
                    self._open_stream(source)
        except BaseException:
            self.close()
            raise

    def _open_path(self, path: str) -> None:
        self.opened: str | bytes | _Stream = library_path(path)
        try:
            status = os.stat(path)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError) as error:
            raise AudioFileError(f"cannot read {self.name}: no such file") from error
        if stat.S_ISDIR(status.st_mode):
            raise AudioFileError(f"cannot read {self.name}: it is a folder")
        if stat.S_ISFIFO(status.st_mode):
            with open(path, "rb") as pipe:  # noqa: PTH123
                self._spool(pipe)
        elif not stat.S_ISREG(status.st_mode):
            raise AudioFileError(f"cannot read {self.name}: it is neither a file nor a pipe")
        elif status.st_size == 0:
            raise AudioFileError(f"cannot read {self.name}: the file is empty")

    def _open_stream(self, source: Any) -> None:
        if hasattr(source, "readable") and not source.readable():
            raise AudioFileError(f"cannot read {self.name}: it was opened for writing only")
        if not hasattr(source, "read") or isinstance(source.read(0), str):
            kind = type(source).__name__
            raise ArgumentTypeError(f"the source must be a path or a binary file object, got {source!r} ({kind})")
        if all(hasattr(source, name) for name in ("seek", "tell")) and getattr(source, "seekable", lambda: True)():
            self._use(source)
        else:
            self._spool(source)

    def _spool(self, pipe: Any) -> None:
        self._spooled = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the source)
        shutil.copyfileobj(pipe, self._spooled)
        self._spooled.seek(0)
        self._use(self._spooled)

    def _use(self, file: Any) -> None:
        self.opened = self._stream = _Stream(file)
        size = self._stream.seek(0, os.SEEK_END)
        self.rewind()
        self.check()
        if size == 0:
            raise AudioFileError(f"cannot read {self.name}: the file is empty")

    def rewind(self) -> None:
        """Go back to the start, for soundfile to open the source again."""
        if self._stream is not None:
            self._stream.seek(0)

    def check(self) -> None:
        """Raise what the file object has raised since it was opened."""
        if self._stream is not None and self._stream.failure is not None:
            with file_errors("read", self.name):
                raise self._stream.failure

    @contextmanager
    def from_start(self) -> Iterator[Any]:
        """Yield a file object at the source's start; libsndfile reads on from where it was."""
        if self._stream is None:
            with open(self.opened, "rb") as file:  # type: ignore[arg-type]  # noqa: PTH123
                yield file
            return
        position = self._stream.tell()
        self._stream.seek(0)
        yield self._stream
        self._stream.seek(position)

    def stream(self) -> Any:
        """Return a file object at the source's start, for a library that calls it until the source is closed."""
        if self._stream is None and self._handle is None:
            self._handle = open(self.opened, "rb")  # type: ignore[arg-type]  # noqa: SIM115, PTH123
        file = self._stream or self._handle
        file.seek(0)
        return file

    @cached_property
    def chunks(self) -> Chunks:
        """The chunks of a WAV or an AIFF, read once."""
        promised = available = 0
        with_id3 = False
        with self.from_start() as file:
            for name, size in _chunks(file):
                if name in {b"data", b"SSND"} and not promised:
                    promised, start = size, file.tell()
                    available = file.seek(0, os.SEEK_END) - start
                with_id3 = with_id3 or name.lower() == b"id3 "
        return Chunks(promised, available, with_id3)

    @cached_property
    def mpeg_frames(self) -> Frames | None:
        """The frames of a file of MPEG audio without a header that names their number, read once; or None."""
        with self.from_start() as file:
            return counted(file)

    def spliced(self, start: int, end: int, inserted: bytes) -> Spliced:
        """Return a file object of the source with other bytes in it."""
        if self._stream is None:
            self._handle = open(self.opened, "rb")  # type: ignore[arg-type]  # noqa: SIM115, PTH123
            self._stream = _Stream(self._handle)
        return Spliced(self._stream, start, end, inserted)

    def missing_bytes(self) -> tuple[int, int]:
        """Return how many bytes the chunk of samples of a WAV or an AIFF lacks, and how many it promises.

        libsndfile would shorten the recording silently. 0 and values near 2^31 and 2^32 are no promise: programs that
        write to a pipe cannot go back to fill in the size.
        """
        promised, available, _ = self.chunks
        return (promised - available if available < promised < 0x7F000000 else 0), promised

    def start_and_size(self) -> tuple[bytes, int]:
        """Return the first bytes, and how many there are."""
        with self.from_start() as file:
            return file.read(START), file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Remove the copy of a pipe; the caller's file object stays open."""
        for file in (self._spooled, self._handle):
            if file is not None:
                file.close()


class _Stream:
    """A file object from its current position on.

    libsndfile calls it, and C code passes no exception on: the first one is kept, and reading ends.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._start = file.tell()
        self.failure: BaseException | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._try(self._file.seek, offset + (self._start if whence == os.SEEK_SET else 0), whence)
        return self.tell()

    def tell(self) -> int:
        position = self._try(self._file.tell)
        return -1 if position is None else int(position) - self._start

    def read(self, size: int = -1) -> bytes:
        """Return as many bytes as requested unless the file ends; an unbuffered one gives fewer at a time."""
        if size < 0:
            return self._try(self._file.read) or b""
        data = b""
        while len(data) < size and (more := self._try(self._file.read, size - len(data))):
            data += more
        return data

    def _try(self, call: Callable[..., Any], *arguments: int) -> Any:
        if self.failure is None:
            try:
                return call(*arguments)
            except BaseException as error:  # noqa: BLE001  (`Source.check` raises it)
                self.failure = error
        return None


def library_path(path: str) -> str | bytes:
    """Return a path as soundfile takes any: names that are not UTF-8 only as bytes (never on Windows)."""
    return path if os.name == "nt" else os.fsencode(path)


_CONTAINERS = (b"RIFF", b"RIFX", b"RF64", b"riff", b"FORM", b"fLaC", b"OggS", b".snd", b"caff", b"ID3")


def may_be_mp3(start: bytes) -> bool:
    """Whether a file's first bytes hold the header of an MPEG audio frame (ISO/IEC 11172-3, 2.4.2.3) or a container.

    libsndfile knows a file by its content first, so that a WAV may be named .mp3.
    """
    if start.startswith(_CONTAINERS):
        return True
    at = start.find(b"\xff")
    while 0 <= at < len(start) - 2:
        version_and_layer, rates = start[at + 1], start[at + 2]
        if version_and_layer >= 0xE0 and version_and_layer & 0x06 and rates >> 4 != 15 and rates & 0x0C != 0x0C:
            return True
        at = start.find(b"\xff", at + 1)
    return False


_ORDERS: dict[bytes, Literal["little", "big"]] = {b"RIFF": "little", b"FORM": "big"}


def _chunks(file: Any) -> Iterator[tuple[bytes, int]]:
    """Yield name and size of each chunk of a WAV or an AIFF; the file is at its first byte then."""
    order = _ORDERS.get(file.read(4))
    start = 12
    while order is not None:
        file.seek(start)
        header = file.read(8)
        if len(header) < 8 or not all(32 <= letter < 127 for letter in header[:4]):  # samples of a file without sizes
            return
        size = int.from_bytes(header[4:], order)
        yield header[:4], size
        start += 8 + size + size % 2
