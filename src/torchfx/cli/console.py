"""Where text goes: the answer to stdout, progress and trouble to stderr."""

from __future__ import annotations

from rich.console import Console

__all__ = ["err", "fail", "out"]

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def fail(error: Exception | str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    err.print("[red]error:[/red] ", end="")
    err.print(" ".join(str(error).split()), markup=False)
    return status
