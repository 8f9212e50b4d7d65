"""Files that appear whole or not at all, and replace none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from torchwhy.experiment.workload import CannotRunError

__all__ = ["free_stem", "write_whole"]


def free_stem(folder: Path, stem: str, suffixes: Sequence[str], force: bool) -> str:
    """Return the stem, or with `_2`, `_3`, ... behind it the first under which no file exists yet.

    With `force` the stem itself: existing files will be replaced.

    >>> free_stem(Path("/nonexistent"), "64_bf16_cold_eager", [".json", ".txt"], force=False)
    '64_bf16_cold_eager'
    """
    candidate, number = stem, 1
    while not force and any((folder / f"{candidate}{suffix}").exists() for suffix in suffixes):
        number += 1
        candidate = f"{stem}_{number}"
    return candidate


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` fill a temporary file beside `path`, rename it to `path`, and return that.

    Raises:
        CannotRunError: the folder cannot be made or written to; nothing is left behind.
    """
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        raise CannotRunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path
