"""Where a trace was read from, and whether it can be read there again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from torchwhy.errors import TraceError
from torchwhy.trace.file.source import Source

__all__ = ["NOWHERE", "Origin"]


@dataclass(frozen=True)
class Origin:
    """A file as it was when it was read.

    Attributes:
        path: None for standard input and files that someone else opened.
        name: how messages call it.
        size, modified_ns: of the file then.
    """

    path: Path | None
    name: str
    size: int = 0
    modified_ns: int = 0

    @classmethod
    def of(cls, source: Source) -> Origin:
        """Look at a source before it is read; what is wrong with it, reading it will tell."""
        if not isinstance(source, str | os.PathLike):
            return cls(None, str(getattr(source, "name", "the open file")))
        name = os.fspath(source)
        if name == "-":
            return cls(None, "standard input")
        path = Path(name).absolute()
        try:
            state = path.stat()
        except (OSError, ValueError):
            return cls(path, name)
        return cls(path, name, state.st_size, state.st_mtime_ns)

    def unchanged(self) -> Path:
        """Return the path.

        Raises:
            TraceError: there is none, or the file is gone or no longer what was read.
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
