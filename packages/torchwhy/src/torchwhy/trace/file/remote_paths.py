"""Paths of URLs whose every error is one of this package: clients of buckets have no common class of errors."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from upath.extensions import ProxyUPath

from torchwhy.errors import TorchWhyError, TraceError

__all__ = ["RemotePath", "reaching"]


@contextmanager
def reaching(url: object) -> Iterator[None]:
    """Turn the errors of a client into `TraceError`; those about files and packages stay as they are."""
    try:
        yield
    except (OSError, ImportError, TorchWhyError):
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise TraceError(f"{url} cannot be reached: {said}") from error


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def reached(path: RemotePath, *arguments: Any, **options: Any) -> Any:
        with reaching(path):
            return method(path, *arguments, **options)

    return reached


class RemotePath(ProxyUPath):  # type: ignore[misc]  # it has no annotations here
    """A path that lists folders and opens files to read.

    Raises:
        TraceError: by each method that asks the server, if it does not answer or the connection is lost.
    """

    exists, is_dir, is_file, stat, read_bytes, read_text = map(
        _guarded,
        (
            ProxyUPath.exists, ProxyUPath.is_dir, ProxyUPath.is_file, ProxyUPath.stat,
            ProxyUPath.read_bytes, ProxyUPath.read_text,
        ),
    )  # fmt: skip

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the paths in a folder."""
        with reaching(self):
            yield from super().iterdir()

    def open(self, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        """Open the file; of binary files reading is guarded, too."""
        with reaching(self):
            file = super().open(mode, *arguments, **options)
        return io.BufferedReader(_RemoteFile(file, str(self))) if mode == "rb" else file


class _RemoteFile(io.RawIOBase):
    """A file that is read from a server."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(place, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with reaching(self._url):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
