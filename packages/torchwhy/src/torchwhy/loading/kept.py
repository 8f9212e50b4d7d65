"""Summaries of ranks in files next to their traces: a job whose reading was stopped continues, and is never read twice.

`.torchwhy` in the job's folder, or of a bucket a folder of the user's cache, has a file for each trace. It holds plain
values in MessagePack, so that reading it runs no code. It counts only while the trace, its path in the folder,
torchwhy, the rules and their thresholds are the same.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import numpy as np

from torchwhy.loading.workers import Thresholds
from torchwhy.plugins import makers
from torchwhy.ranks.summary import Summary
from torchwhy.trace.file.writing import whole_file

__all__ = ["FOLDER", "KeptSummaries"]

FOLDER: Final = ".torchwhy"


class _Source(msgspec.Struct, frozen=True):
    """The source of a summary: its file, and what read it."""

    path: str
    size: int
    mtime_ns: int
    made_by: str


class _Kept(msgspec.Struct, frozen=True):
    source: _Source
    summary: Summary


class KeptSummaries:
    """The summaries that are kept of a job.

    Args:
        folder: of the job.
        thresholds: of the rules on single traces.
    """

    def __init__(self, folder: Path, thresholds: Thresholds | None = None) -> None:
        self._folder = folder
        self._kept = folder / FOLDER if isinstance(folder, Path) else _cache() / _digest(str(folder))
        given = {rule: dict(values) for rule, values in (thresholds or {}).items()}
        self._made_by = f"{_torchwhy()} {json.dumps(given, sort_keys=True, default=str)}"
        self._sources: dict[Path, _Source] = {}

    def of(self, trace: Path) -> Summary | None:
        """Return a trace's summary; None where none is kept, or the one that is kept was made of something else."""
        try:
            state = trace.stat()
            changed = state.st_mtime_ns if isinstance(trace, Path) else _changed(trace)
            source = self._sources[trace] = _Source(self._name(trace), state.st_size, changed, self._made_by)
            kept = _DECODER.decode(self._file(trace).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        # The folder may go by another name today.
        return replace(kept.summary, file=str(trace)) if kept.source == source else None

    def keep(self, trace: Path, summary: Summary) -> None:
        """Keep the summary of a trace with the size and time that `of` read: it may have changed meanwhile.

        Raises:
            OSError: the file cannot be written.
        """
        if trace not in self._sources:  # its size and time could not be read
            return
        nameless = replace(summary, file="")
        try:
            data = msgspec.msgpack.encode(_Kept(self._sources[trace], nameless), enc_hook=_bytes_of)
        except (OverflowError, UnicodeEncodeError):  # absurd numbers or texts of a trace: it is read again next time
            return
        target = self._file(trace)
        target.parent.mkdir(exist_ok=True, parents=not isinstance(self._folder, Path))
        with whole_file(target) as file:
            file.write(data)

    def _name(self, trace: Path) -> str:
        """The path within the folder, with escapes for bytes that are no UTF-8."""
        return trace.relative_to(self._folder).as_posix().encode(errors="backslashreplace").decode()

    def _file(self, trace: Path) -> Path:
        return self._kept / f"{_digest(self._name(trace))}.summary"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torchwhy"


def _changed(trace: Any) -> int:
    """What is another number when a file of a bucket was written again, from whatever its file system says."""
    info = trace.fs.info(trace.path)
    facts = [info.get(name) for name in ("ETag", "etag", "md5Hash", "LastModified", "updated", "mtime", "created")]
    return int.from_bytes(blake2b(repr(facts).encode(), digest_size=7).digest(), "big")


@cache
def _torchwhy() -> str:
    """The version of torchwhy and of the packages that bring rules; sizes of files, since a clone's version stays."""
    root = Path(__file__).parents[1]
    sizes = sorted((path.relative_to(root).as_posix(), path.stat().st_size) for path in root.rglob("*.py"))
    code = blake2b(repr(sizes).encode(), digest_size=8).hexdigest()
    return " ".join([version("torchwhy"), code, *makers()])


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    raise NotImplementedError(f"a summary holds a {type(value).__name__}")


def _array_of(kind: Any, value: Any) -> Any:
    """An array from its bytes; `kind` is annotated as NDArray[np.int64] or the like."""
    if not isinstance(value, bytes):
        raise TypeError(f"the numbers of a summary must be bytes, got {type(value).__name__}")
    [number] = get_args(get_args(kind)[1])
    return np.frombuffer(value, number)


_DECODER: Final = msgspec.msgpack.Decoder(_Kept, dec_hook=_array_of)
