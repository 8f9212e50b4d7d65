"""Where text goes: the answer to stdout, progress and trouble to stderr."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from torchfx.profiler.wording import safe

__all__ = ["err", "fail", "out"]


class AnyText(Console):
    """A console that shows "?" for what its encoding lacks, such as bytes in a file's name that are no UTF-8."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print like `rich.console.Console.print`."""
        super().print(*(self._shown(item) if isinstance(item, str) else item for item in objects), **options)

    def _shown(self, text: str) -> str:
        return text.encode(self.encoding, "replace").decode(self.encoding)


# Without emoji, a file named :cat:.wav is called that.
out = AnyText(highlight=False, soft_wrap=True, emoji=False)
err = AnyText(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def fail(error: Exception | str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    err.print("[red]error:[/red] ", end="")
    err.print(safe(" ".join(str(error).split())), markup=False)
    return status
