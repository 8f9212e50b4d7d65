"""The line of the user's program that is running now."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import FrameType

__all__ = ["short_path", "user_line"]

_OWN = str(Path(__file__).parent)


@cache
def _is_library(file: str) -> bool:
    import torch

    return file.startswith((str(Path(torch.__file__).parent), _OWN, "<frozen")) or Path(file).name == "contextlib.py"


@cache
def short_path(file: str) -> str:
    """Return the path relative to the current folder where it lies below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def user_line() -> str:
    """Return the nearest line that belongs neither to PyTorch nor to this package, `file.py:12 in step`.

    Operators of the backward pass on a GPU run in autograd's own thread, below no line of the program.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "(backward pass, autograd's thread)"
    return f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"
