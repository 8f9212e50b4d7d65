"""The manifest of an archive's outputs: what is done, so that a run that was stopped continues where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from torchfx.audio_io.messages import file_errors
from torchfx.audio_io.temporary import sync
from torchfx.distributed.files import Outcome
from torchfx.distributed.sources import STREAM, Job, is_url, stamp
from torchfx.errors import AudioFileError

__all__ = ["NAME", "Manifest"]

NAME = "torchfx-manifest.jsonl"


class Manifest:
    """A file that grows by a line of JSON for each output that is begun, done or failed; the last line counts.

    A line says what the output was made of: the source with its size and time of change, and the recipe. An output is
    done if its line says so, what it was made of is the same, and the file is there. Each line is one system call, so
    that a killed process leaves whole ones; a line that is cut, as after a loss of power, is left out.

    Args:
        path: where it is; it is made with its folder when the first line is written.
        recipe: the recipe's text.

    Raises:
        AudioFileError: it cannot be read.
    """

    def __init__(self, path: str, recipe: str) -> None:
        """Read what is there."""
        self.path, self._recipe = path, recipe
        self._file = -1
        try:
            lines = Path(path).read_bytes().split(b"\n") if Path(path).exists() else []
        except OSError as error:
            raise AudioFileError(f"cannot read {path}: {error.strerror}") from error
        entries = [entry for entry in map(_entry, lines) if entry is not None]
        self._known = {entry["target"]: entry for entry in entries}

    def knows(self, job: Job) -> bool:
        """Whether the output was begun from the same source by a run with this manifest, and so may be replaced."""
        entry = self._known.get(self._name(job.target))
        return entry is not None and entry.get("source") == self._name(job.source)

    def is_done(self, job: Job) -> bool:
        """Whether the output was made of the same source by the same recipe."""
        entry = self._known.get(self._name(job.target))
        made_of = self._made_of(job)
        return entry is not None and entry["state"] == "done" and made_of["size"] >= 0 and {**entry, **made_of} == entry

    def begin(self, job: Job) -> dict[str, Any]:
        """Note that an output is begun; return its line, for `end`: the source may change while it is read."""
        entry = {"state": "begun", "target": self._name(job.target), **self._made_of(job)}
        self._write(entry)
        return entry

    def end(self, entry: dict[str, Any], outcome: Outcome) -> None:
        """Note what became of it."""
        if outcome.error is None:
            if outcome.job.target != STREAM and not is_url(outcome.job.target):
                sync(outcome.job.target)  # or the line that says it is done might outlive it when the power fails
            self._write({**entry, "state": "done", "seconds": round(outcome.duration_s, 6)})
        else:
            self._write({**entry, "state": "failed", "error": str(outcome.error)})

    def _name(self, path: str) -> str:
        """Return a path relative to the manifest, so that an archive may be moved."""
        if is_url(path):
            return path
        folder = os.path.dirname(os.path.abspath(self.path))  # noqa: PTH100, PTH120
        return os.path.relpath(os.path.abspath(path), folder)  # noqa: PTH100

    def _made_of(self, job: Job) -> dict[str, Any]:
        try:
            size, changed = stamp(job.source)
        except AudioFileError:  # the work will say so
            size, changed = -1, ""
        return {"source": self._name(job.source), "size": size, "changed": changed, "recipe": self._recipe}

    def _write(self, entry: dict[str, Any]) -> None:
        with file_errors("write", self.path):
            os.write(self._file, json.dumps(entry).encode() + b"\n")

    def __enter__(self) -> Manifest:
        """Open the file, and make it with its folder where it isn't there."""
        with file_errors("write", self.path):
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.path, flags, 0o666)
            size = os.fstat(self._file).st_size
            os.lseek(self._file, max(0, size - 1), os.SEEK_SET)
            if os.read(self._file, 1) not in {b"", b"\n"}:  # the last line was cut
                os.write(self._file, b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._file)


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"state", "target"} <= found.keys() else None
