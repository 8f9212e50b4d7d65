"""The line of the user's program that is running now, and how lines are written."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import FrameType

from torchwhy.wording import working_folder

__all__ = ["Line", "line_text", "short_path", "user_line"]

Line = tuple[str, int, str]  # file, line, function
_NOWHERE: Line = ("", 0, "")

_OWN = str(Path(__file__).parent)


@cache
def _is_library(file: str) -> bool:
    import torch

    return file.startswith((str(Path(torch.__file__).parent), _OWN, "<frozen")) or Path(file).name == "contextlib.py"


@cache
def short_path(file: str) -> str:
    """Return the path relative to the current folder where it lies below it."""
    path, here = Path(file), working_folder()
    return str(path.relative_to(here)) if here is not None and path.is_relative_to(here) else file


def line_text(line: Line) -> str:
    """Return `file.py:12 in step`."""
    file, number, function = line
    return f"{short_path(file)}:{number} in {function}" if file else "(backward pass, autograd's thread)"


def user_line() -> Line:
    """Return the nearest line that belongs neither to PyTorch nor to this package.

    Operators of the backward pass on a GPU run in autograd's own thread, below no line of the program.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame is not None else _NOWHERE
