"""The bytes of a trace file in chunks, whatever holds them: a path, an open file, standard input; plain or gzip."""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from torchwhy.errors import ArgumentTypeError, TraceError
from torchwhy.trace.file.recorders import ROCPROFILER_KEY
from torchwhy.trace.file.remote import is_url, path_of

try:
    from isal import isal_zlib  # has wheels for most processors; unpacks three times as fast
    from isal.igzip_lib import IsalError
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

__all__ = ["CHUNK", "Chunks", "Readable", "Source"]

CHUNK: Final = 1 << 20
"""Bytes handed out at a time, about."""

GZIP: Final = b"\x1f\x8b"
PIECE: Final = 1 << 16
"""Packed bytes unpacked at a time: a member of a gzip file copies what follows it."""

UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

PICKLE: Final = "a pickle (snapshots of the memory allocator are read by torchwhy memory)"
LOOKS: Final = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WAV, AVI or WebP)"),
    (b"fLaC", "a FLAC file"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (or a file of torch.save): unpack it and name the trace inside"),
    (b"\x28\xb5\x2f\xfd", "zstd data: unpack it first"),
    (GZIP, "gzip data packed once more: unpack it once (gunzip)"),
    (b"BZh", "bzip2 data: unpack it first"),
    (b"\xfd7zXZ", "xz data: unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it first"),
    (b'"Kind","Agent', "a table of rocprofv3: record with --output-format rocpd, json or pftrace"),
    (b'"Domain","Function', "a table of rocprofv3: record with --output-format rocpd, json or pftrace"),
    (b"\x7fELF", "a program"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x02", PICKLE),
    (b"\x80\x03", PICKLE),
    (b"\x80\x04", PICKLE),
    (b"\x80\x05", PICKLE),
    (b"version https://git-lfs", "the placeholder of a file in Git LFS: git lfs pull fetches the file"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "XML"),
    (b"<", "a page of mark-up"),
)
"""How files begin that are given by mistake; compared without regard to case."""


NSIGHT_REPORTS: Final = (".nsys-rep", ".qdrep")
"""Names of reports that must be exported first."""

JSON: Final = (b"{", b"[")
"""How traces of PyTorch's profiler begin."""

LINE_BREAK: Final = re.compile(rb"\s*\n\s*")

PATIENCE_S: Final = 10.0
"""How long a named pipe may stay empty."""


class Readable(Protocol):
    """An open binary file, or anything that reads like one."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        ...


Source: TypeAlias = "str | os.PathLike[str] | Readable"


class Chunks:
    """The decompressed bytes of a source, as an iterator over chunks; can be gone through once.

    Args:
        source: a path, "-" for standard input, or an open binary file, which stays open. Gzip is recognised by its
            first bytes, UTF-16 by its byte order mark (and comes out as UTF-8). The files of other recorders come out
            as the text of a trace (`recorders`).

    Attributes:
        name: how messages call the source.
        truncated_gzip: set when the compressed data ended early or was damaged; what could be unpacked has come out.

    Raises:
        TraceError: the file is missing, a folder, not permitted, empty, or begins neither like JSON nor like the file
            of another recorder.
        ArgumentTypeError: `source` has another type, or is an open text file.
    """

    def __init__(self, source: Source) -> None:
        self.truncated_gzip = False
        self._owned = False
        self._file: Readable
        if isinstance(source, (str, os.PathLike)) or (not hasattr(source, "read") and is_url(source)):
            self.name = str(source)
            if self.name == "-":
                self.name, self._file = "standard input", sys.stdin.buffer
            else:
                self._file = _open(self.name)
                self._owned = True
        elif hasattr(source, "read"):
            self.name, self._file = str(getattr(source, "name", "the open file")), source
        else:
            raise ArgumentTypeError(f"source must be a path, '-' or an open binary file, got {type(source).__name__}")

    def __enter__(self) -> Chunks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._owned:
            self._file.close()  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[bytes]:
        chunks = self._plain()
        head = next(chunks, b"")
        if not head:
            raise TraceError(f"{self.name} is empty")
        foreign = None
        if head[:1] not in JSON or ROCPROFILER_KEY in head[:64]:
            from torchwhy.trace.file.recorders.catalogue import translated  # takes a while; few files need it

            foreign = translated(self.name, head, self._stored(head), chain((head,), chunks))
        if foreign is not None:
            yield from foreign
            return
        check_looks_like_json(self.name, head)
        yield from _as_list(head, chunks) if _has_event_lines(head) else chain((head,), chunks)

    def _stored(self, head: bytes) -> Path | None:
        """The file that holds the bytes as they come out; None where they are unpacked, or come from a pipe."""
        path = Path(self.name)
        if not self._owned or not path.is_file():
            return None
        with path.open("rb") as file:
            return path if file.read(16) == head[:16] else None

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except UnicodeDecodeError as error:
            raise ArgumentTypeError(f"{self.name} is open as text; open it in binary mode ('rb')") from error
        except TraceError:  # of a URL
            raise
        except OSError as error:
            raise TraceError(f"{self.name} cannot be read: {error.strerror or error}") from error
        if isinstance(data, str):
            raise ArgumentTypeError(f"{self.name} is open as text; open it in binary mode ('rb')")
        return bytes(data or b"")  # some hand out other buffers, or None at the end

    def _raw(self) -> Iterator[bytes]:
        # What comes first decides on everything; a pipe may hand out single bytes.
        head = b""
        while len(head) < 64 and (data := self._read(CHUNK)):
            head += data
        if head:
            yield head
        while data := self._read(CHUNK):
            yield data

    def _unpacked(self) -> Iterator[bytes]:
        start = self._tell()
        raw = self._raw()
        head = next(raw, b"")
        if not head.startswith(GZIP):
            if head:
                yield head
                yield from raw
            return
        given = 0
        if isal_zlib is not None and start is not None:
            try:
                for out in _members(_pieces(head, raw), isal_zlib.decompressobj):
                    given += len(out)
                    yield out
            except (_Damaged, IsalError):  # type: ignore[misc]  # the stubs call the class an instance
                # zlib gives all that comes before the damage.
                self._file.seek(start)  # type: ignore[attr-defined]
                head, raw = b"", self._raw()
            else:
                return
        try:
            for out in _members(_pieces(head, raw), zlib.decompressobj):
                if given < len(out):
                    yield out[given:]
                given -= min(given, len(out))
        except _Damaged:
            self.truncated_gzip = True

    def _tell(self) -> int | None:
        """Where in the source we are; None where there is no way back."""
        try:
            return self._file.tell() if self._file.seekable() else None  # type: ignore[attr-defined]
        except (AttributeError, OSError):
            return None

    def _plain(self) -> Iterator[bytes]:
        chunks = _joined(self._unpacked())
        head = next(chunks, b"")
        if not head.startswith(UTF16):
            yield head
            yield from chunks
            return
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        yield decoder.decode(head).encode()
        for chunk in chunks:
            yield decoder.decode(chunk).encode(errors="replace")
        yield decoder.decode(b"", final=True).encode()


class _Damaged(Exception):  # noqa: N818 -- caught here
    """The compressed data end early, or make no sense any further."""


def _pieces(head: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Cut what is read into pieces."""
    for chunk in chain((head,), raw):
        for i in range(0, len(chunk), PIECE):
            yield chunk[i : i + PIECE]


def _members(pieces: Iterator[bytes], member_of: Any) -> Iterator[bytes]:
    """Unpack one member after the other; zeros and garbage after the last one are ignored."""
    member = member_of(31)
    for piece in pieces:
        data = piece
        while data:
            before = member.copy() if member_of is zlib.decompressobj else member
            try:
                out = member.decompress(data, CHUNK)
            except zlib.error:
                yield from _salvage(before, data)
                raise _Damaged from None
            if out:
                yield out
            data = member.unconsumed_tail
            if member.eof:
                data = member.unused_data
                while len(data) < len(GZIP) and (more := next(pieces, b"")):
                    data += more
                if not data.startswith(GZIP):
                    return
                member = member_of(31)
    tail = member.flush()
    if tail:
        yield tail
    raise _Damaged


def _open(name: str) -> Readable:
    path = path_of(name)
    try:
        if is_url(name):
            return path.open("rb")
        if path.is_fifo():
            return _open_pipe(name)
        return path.open("rb")
    except TraceError:  # of a URL
        raise
    except IsADirectoryError as error:
        raise TraceError(f"{name} is a folder; name a trace file in it") from error
    except FileNotFoundError as error:
        raise TraceError(f"{name} does not exist") from error
    except PermissionError as error:
        if path.is_dir():  # Windows
            raise TraceError(f"{name} is a folder; name a trace file in it") from error
        raise TraceError(f"{name} may not be read: permission denied") from error
    except (OSError, ValueError) as error:
        raise TraceError(f"{name} cannot be opened: {error}") from error


def _open_pipe(name: str) -> Readable:
    """Open a named pipe once something is in it: opening it otherwise waits for a writer for ever."""
    pipe = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    if not waiting.poll(1000 * PATIENCE_S):
        os.close(pipe)
        raise TraceError(f"{name} is a pipe, and nothing was written to it for {PATIENCE_S:g} s")
    os.set_blocking(pipe, True)
    return os.fdopen(pipe, "rb")


def _has_event_lines(head: bytes) -> bool:
    """Whether a file begins with an event on a line, and the next one begins after it."""
    line, _, rest = head.lstrip().partition(b"\n")
    return line[:1] == b"{" and line.rstrip()[-1:] == b"}" and b'"ph"' in line and rest.lstrip()[:1] == b"{"


def _as_list(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """A list of what is on the lines: in JSON, strings have no line breaks."""
    yield b"["
    blank = b""
    for chunk in chain((head,), chunks):
        given = blank + chunk
        lines = given.rstrip()
        blank = given[len(lines) :]
        yield LINE_BREAK.sub(b"\n,", lines)
    yield b"]"


def _joined(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Make the first chunk long enough to be recognised by."""
    head = b""
    while len(head) < 64 and (chunk := next(chunks, b"")):
        head += chunk
    if head:
        yield head
        yield from chunks


def _salvage(member: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Unpack up to the damage, found by halving: a call that fails gives nothing of what it had."""
    size = len(data)
    while size:
        trial = member.copy()
        try:
            out = trial.decompress(data[:size])
        except zlib.error:
            size //= 2
            continue
        if out:
            yield out
        member, data = trial, data[size:]
        size = min(size, len(data))


def check_looks_like_json(name: str, head: bytes) -> None:
    """Raise TraceError, saying what the file looks like, unless `head` begins like a JSON object or list."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip(bytes(range(33)))
    if text[:1] in (b"{", b"["):
        return
    if name.endswith(NSIGHT_REPORTS):
        raise TraceError(f"{name} is a report of Nsight Systems: nsys export --type sqlite makes a file that is read")
    if not text:
        return  # more may follow
    lower = head[:64].lower()
    for start, what in LOOKS:
        if lower.startswith(start.lower()) or (start[:1] == b"<" and text.lower().startswith(start)):
            raise TraceError(f"{name} is not a trace: it looks like {what}")
    shown = text[:20].decode("utf-8", "replace")
    raise TraceError(f"{name} is not a trace: it begins with {shown!r} instead of an object or a list")
