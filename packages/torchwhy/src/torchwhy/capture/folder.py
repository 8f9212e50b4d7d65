"""A run's folder: claimed under an unused name, filled out of sight, renamed when it is whole."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["PARTIAL", "RunFolder", "add_file", "claim", "claim_temporary", "rank_of"]

PARTIAL = ".partial"
LONGEST_NAME = 50  # characters of a name that is kept where it may be what could not be written


@dataclass(frozen=True)
class RunFolder:
    """Where a run is written.

    Attributes:
        final: the name it gets when it is whole.
        partial: the name while it is being filled; what is left here after a crash is incomplete.
        made: folders around it that were made for it, the innermost first.
    """

    final: Path
    made: tuple[Path, ...] = ()

    @property
    def partial(self) -> Path:
        """The name until `publish`."""
        return self.final.with_name(self.final.name + PARTIAL)

    def publish(self) -> Path:
        """Give the folder its name.

        Raises:
            OSError: the folder cannot be renamed.
        """
        if self.final.is_dir():
            self.final.rmdir()  # empty: where it is not, the error says so
        self.partial.rename(self.final)
        return self.final

    def discard(self) -> None:
        """Remove the folder, and the folders that were made for it, or for its ranks, if that leaves them empty."""
        shutil.rmtree(self.partial, ignore_errors=True)
        of_ranks = (self.final.parent,) if self.final.name.startswith("rank") else ()
        with suppress(OSError):  # other runs, or ranks, are in it
            for around in dict.fromkeys((*of_ranks, *self.made)):
                around.rmdir()


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """This process's number among those of a distributed run; None outside one.

    >>> rank_of({"RANK": "3", "WORLD_SIZE": "8"}), rank_of({})
    (3, None)
    """
    rank = environment.get("RANK", "")
    return int(rank) if rank.isdigit() and "WORLD_SIZE" in environment else None


def claim(path: Path, rank: int | None = None) -> RunFolder:
    """Take `path`, or `path-2`, `path-3`, ... if something is in it; with a rank, `path/rank0` and so on.

    Raises:
        OSError: no folder can be made there.
    """
    path = path.absolute()
    if not path.name:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    for number in itertools.count(1):
        base = path if number == 1 else path.with_name(f"{path.name}-{number}")
        folder = RunFolder(base if rank is None else base / f"rank{rank}")
        if _is_taken(folder.final) or folder.partial.exists():
            continue
        folder = RunFolder(folder.final, tuple(each for each in folder.final.parents if not each.exists()))
        folder.final.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.partial.mkdir()
        except FileExistsError:
            continue  # another process was faster
        return folder
    raise AssertionError("unreachable")


def claim_temporary(name: str) -> RunFolder:
    """A folder among the system's temporary files, for when the one requested cannot be written."""
    around = Path(tempfile.mkdtemp(prefix="torchwhy-profile-"))
    return replace(claim(around / (name[:LONGEST_NAME] or "run")), made=(around,))


def _is_taken(path: Path) -> bool:
    """Whether something is there; an empty folder, as `mktemp -d` makes one, is there to be filled."""
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def add_file(path: Path, text: str) -> None:
    """Write a file into a folder that is whole already, or replace it; it appears when it is whole, too.

    Raises:
        OSError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}{PARTIAL}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
