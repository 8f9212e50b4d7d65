"""The traces in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torchfx.errors import TraceError

__all__ = ["traces_in"]

SUFFIXES: Final = (".json", ".json.gz", ".pt.trace", ".pt.trace.gz")


def traces_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that may be traces, and those that are something else, each by name.

    Where the folder has none itself, its folders are looked into (one per rank).

    Raises:
        TraceError: there is no such folder, or nothing in it may be a trace.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder} is no folder" if folder.exists() else f"{folder} does not exist")
    try:
        for pattern in ("*", "*/*"):
            files = sorted(path for path in folder.glob(pattern) if path.is_file() and not path.name.startswith("."))
            traces = [path for path in files if path.name.lower().endswith(SUFFIXES)]
            if traces:
                return traces, [path for path in files if path not in traces]
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror or error}") from error
    raise TraceError(f"{folder} has no traces in it (no file ends in .json or .json.gz)")
