"""The compiler's own log in a run's folder: graph breaks with their reasons, failed guards, times, generated code."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from torchwhy.capture.containment import described, is_programs
from torchwhy.wording import size_text

__all__ = ["FILE", "CompileLog"]

FILE: Final = "compile.log"
"""Its name in the folder; tlparse reads it, too."""

MOST: Final = 64 << 20
"""Bytes after which only reasons and times are written; as much again ends the log."""

_SMALL: Final = ("str", "dynamo_start", "compilation_metrics", "bwd_compilation_metrics", "compilation_metrics_runtime")
_REASONS: Final = ("dynamo_graph_break_reason", "recompile_reasons")

_BASIC: Final = 2
"""The value of `torch._inductor.config.trace.provenance_tracking_level` that records the lines of each fused kernel."""


class CompileLog:
    """Writes what PyTorch notes while it compiles, as TORCH_TRACE has it; the program's own TORCH_TRACE stays as it is.

    Args:
        path: of the file, whose folder is there.
        most: bytes after which only reasons and times are written.
    """

    def __init__(self, path: Path, most: int = MOST) -> None:
        self.path = path
        self._most = most
        self._handler: _Handler | None = None
        self._problem = ""

    def attach(self) -> None:
        """Begin; PyTorch is loaded."""
        try:
            from torch._logging import _internal
        except ImportError as error:
            self._problem = f"the compiler's log was not written, PyTorch 2.1 and later have one: {error}"
            return
        log = getattr(_internal, "trace_log", None)
        if log is None:
            self._problem = "the compiler's log was not written: PyTorch has one since version 2.3"
            return
        self._handler = _Handler(self.path, self._most)
        self._handler.setFormatter(_internal.TorchLogsFormatter(trace=True))
        # First: PyTorch's own handler removes itself meanwhile, and the list's next one is passed over then.
        log.handlers.insert(0, self._handler)

    def note_provenance(self, config: ModuleType) -> None:
        """Let Inductor note which lines a fused kernel is made of, unless the program says how much it notes."""
        level: Any = getattr(config, "trace", None)
        if self._handler is not None and getattr(level, "provenance_tracking_level", None) == 0:
            level.provenance_tracking_level = _BASIC

    def close(self) -> list[str]:
        """End the log; return what did not go as asked."""
        if self._handler is None:
            return [self._problem] if self._problem else []
        from torch._logging import _internal

        _internal.trace_log.removeHandler(self._handler)
        self._handler.close()
        return [self._handler.problem] if self._handler.problem else []


class _Handler(logging.Handler):
    """Appends records to a file, within a bound; made in one process, silent in those forked from it."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(logging.DEBUG)
        self.problem = ""
        self._path, self._most, self._process = path, most, os.getpid()
        self._size = 0
        self._file: Any = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record if there is room for its kind; what goes wrong must not reach the program."""
        if os.getpid() != self._process or (self.problem and self._file is None):
            return
        if self._size > self._most and not (self._size < 2 * self._most and _is_small(getattr(record, "metadata", {}))):
            self.problem = self.problem or (
                f"the compiler's log has {size_text(self._most)}, as much as is kept of its graphs and code; after "
                "that it holds reasons and times only"
            )
            return
        try:
            data = f"{self.format(record)}\n".encode("utf-8", "replace")
            if self._file is None:
                self._file = self._path.open("wb")
                self._file.write(f"{self.format(_version_record())}\n".encode())
            self._file.write(data)
            self._size += len(data)
        except Exception as error:
            if is_programs(error):
                raise
            self.close()
            self.problem = f"the compiler's log is not whole: {described(error)}"

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None and os.getpid() == self._process:
            try:
                file.close()
            except OSError as error:
                self.problem = f"the compiler's log is not whole: {error}"
        super().close()


def _version_record() -> logging.LogRecord:
    """PyTorch's version, as its own handler notes it; that one writes nothing here."""
    import torch

    payload = json.dumps({"pytorch_version": torch.__version__}, indent=0)
    digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    metadata = {"artifact": {"name": "torch_version", "encoding": "json"}, "has_payload": digest}
    known = {"levelname": "DEBUG", "pathname": torch.__file__, "process": os.getpid(), "lineno": 1}
    return logging.makeLogRecord({**known, "metadata": metadata, "payload": payload})


def _is_small(metadata: dict[str, Any]) -> bool:
    """Whether a record gives a reason or a time."""
    artifact = metadata.get("artifact")
    name = artifact.get("name") if isinstance(artifact, dict) else ""
    return name in _REASONS or any(kind in metadata for kind in _SMALL)
