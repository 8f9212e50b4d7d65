"""Where a trace was read from, and whether it can be read there again."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile

from torchwhy.errors import TraceError
from torchwhy.trace.file.remote import path_of
from torchwhy.trace.file.source import Readable, Source

__all__ = ["NOWHERE", "KeptInput", "Origin"]


class KeptInput:
    """Standard input, of which a temporary file keeps what was read: some of it is wanted a second time.

    Attributes:
        name: how messages call it.
    """

    name = "standard input"

    def __init__(self, stream: Readable | None = None) -> None:
        self._stream = sys.stdin.buffer if stream is None else stream
        self._kept = NamedTemporaryFile(prefix="torchwhy-")  # noqa: SIM115 -- there as long as this is

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        data = self._stream.read(size)
        self._kept.write(data)
        return data

    def origin(self) -> Origin:
        """Return the file of what was read, which is there as long as the origin is."""
        self._kept.flush()
        path = Path(self._kept.name)
        state = path.stat()
        return Origin(path, self.name, state.st_size, state.st_mtime_ns, self)


@dataclass(frozen=True)
class Origin:
    """A file as it was when it was read.

    Attributes:
        path: None for files that someone else opened, and for standard input that was not kept.
        name: how messages call it.
        size, modified_ns: of the file then.
        kept: what holds a temporary file.
    """

    path: Path | None
    name: str
    size: int = 0
    modified_ns: int = 0
    kept: KeptInput | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, source: Source) -> Origin:
        """Look at a source before it is read; what is wrong with it, reading it shows."""
        if not isinstance(source, str | os.PathLike):
            return cls(None, str(getattr(source, "name", "the open file")))
        name = os.fspath(source)
        if name == "-":
            return cls(None, "standard input")
        path = path_of(name).absolute()
        try:
            state = path.stat()
        except (OSError, ValueError):
            return cls(path, name)
        return cls(path, name, state.st_size, state.st_mtime_ns)

    def unchanged(self) -> Path:
        """Return the path.

        Raises:
            TraceError: the trace has no path, or the file was removed or has changed.
        """
        if self.path is None:
            raise TraceError(f"{self.name} cannot be read a second time; load the trace from a file by its path")
        try:
            state = self.path.stat()
        except OSError as error:
            raise TraceError(f"{self.name} cannot be read again: {error.strerror or error}") from error
        if (state.st_size, state.st_mtime_ns) != (self.size, self.modified_ns):
            raise TraceError(f"{self.name} has changed since it was loaded; load it again")
        return self.path


NOWHERE = Origin(None, "a trace that came from no file")
