"""`torchfx trim`, `torchfx concat`, `torchfx mix`, `torchfx split` and `torchfx synth`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torchfx import editing
from torchfx.cli.console import answer, complain, warnings_said
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

__all__ = ["concat", "mix", "split", "synth", "trim"]


def trim(source: str, target: str, start: str, end: str | None, force: bool) -> int:
    """Copy a part of a file; return 0, 2 for misuse, or 3 where a file cannot be read or written."""

    def work() -> str:
        _check_free([Path(target)], force)
        return f"{source} -> {target} ({editing.trim(source, target, start, end):.2f} s)\n"

    return _answered(work)


def concat(paths: Sequence[str], force: bool) -> int:
    """Join all files but the last one into that; return as `trim`."""

    def work() -> str:
        if len(paths) < 2:
            raise ArgumentError(f"concat needs one or more inputs and an output, got {len(paths)} path")
        _check_free([Path(paths[-1])], force)
        return f"{len(paths) - 1} files -> {paths[-1]} ({editing.concat(paths[:-1], paths[-1]):.2f} s)\n"

    return _answered(work)


def mix(paths: Sequence[str], gains: Sequence[str], rate: float | None, force: bool) -> int:
    """Add all files but the last one up into that; return as `trim`."""

    def work() -> str:
        if len(paths) < 2:
            raise ArgumentError(f"mix needs one or more inputs and an output, got {len(paths)} path")
        _check_free([Path(paths[-1])], force)
        return f"{len(paths) - 1} files -> {paths[-1]} ({editing.mix(paths[:-1], paths[-1], gains, rate):.2f} s)\n"

    return _answered(work)


def synth(kind: str, target: str, force: bool, **how: Any) -> int:
    """Write a test signal; return as `trim`."""

    def work() -> str:
        from torchfx.synthesis import synthesize

        _check_free([Path(target)], force)
        return f"{kind} -> {target} ({synthesize(kind, target, **how):.2f} s)\n"

    return _answered(work)


def split(
    source: str, folder: str, every: str | None, silence_db: float | None, least: str, suffix: str | None, force: bool
) -> int:
    """Cut a file into parts; return as `trim`."""

    def work() -> str:
        parts = editing.split(
            source, folder, every, silence_db, least, suffix=suffix, check=lambda paths: _check_free(paths, force)
        )
        return "".join(f"{part}\n" for part in parts)

    return _answered(work)


def _check_free(paths: Sequence[Path], force: bool) -> None:
    taken = [path for path in paths if path.exists()]
    if taken and not force:
        raise ArgumentError(f"{taken[0]} exists already; --force overwrites it")


def _answered(work: Callable[[], str]) -> int:
    try:
        with warnings_said():
            answer(work())
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except AudioFileError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot write: {error}", 3)
    return 0
