"""Git for the history: the commit that is checked out, its time, and moving between commits."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from torchwhy.errors import TorchWhyError

__all__ = ["Commit", "GitError", "Repository", "commit_of"]


class GitError(TorchWhyError, OSError):
    """git is not installed, or refuses."""


@dataclass(frozen=True)
class Commit:
    """A commit.

    Attributes:
        id: its hexadecimal name, with "-dirty" after it where files differ from it; "" where it isn't known.
        when_s: when it was committed, seconds since 1970; None where git doesn't know.
    """

    id: str = ""
    when_s: float | None = None


@dataclass(frozen=True)
class Repository:
    """A working tree of git; `folder` is any folder in it."""

    folder: Path

    def ask(self, *words: str) -> str:
        """Run git and return what it prints, without blanks around it.

        Raises:
            GitError: git is missing or ended with an error; the message is git's own.
        """
        command = ["git", "-C", str(self.folder), *words]
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                errors="replace",
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror or error}") from error
        if ran.returncode:
            said = " ".join((ran.stderr or ran.stdout).split()) or f"exit status {ran.returncode}"
            raise GitError(f"git {words[0]} failed: {said}")
        return ran.stdout.strip()

    def knows(self, *words: str) -> bool:
        """Whether git ends without an error."""
        try:
            self.ask(*words)
        except GitError:
            return False
        return True

    @property
    def is_clean(self) -> bool:
        """Whether the files that git tracks are as committed."""
        return not self.ask("status", "--porcelain", "--untracked-files=no")


def commit_of(folder: Path, name: str | None = None) -> Commit:
    """Return a commit of the repository around a folder; of unknown names the name alone.

    Args:
        folder: in a working tree, or not.
        name: any name that git takes; None for what is checked out, whose files may differ from it.
    """
    repository = Repository(folder)
    try:
        words = repository.ask("show", "-s", "--format=%H %ct", f"{name or 'HEAD'}^{{commit}}").split()
        dirty = name is None and not repository.is_clean
    except GitError:
        return Commit(name or "")
    return Commit(words[0] + ("-dirty" if dirty else ""), float(words[1]))
