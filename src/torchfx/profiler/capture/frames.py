"""Python frames as the profiler names them, cut down to those of the program."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["call_path", "program_frames"]

LAUNCHER = "torchfx/profiler/capture/launch/program.py"
OWN = ("torchfx/profiler/capture/", "torch/profiler/profiler.py", "torch/autograd/profiler.py")
INSIDE_TORCH = ("torch/", "<built-in", "<frozen", "<string>")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def call_path(stack: Sequence[str]) -> list[str]:
    """A stack, innermost first, as a path from the outside in: without the profiler, its launcher and addresses."""
    path = [ADDRESS.sub("", frame) for frame in reversed(stack)]
    launched = [place for place, frame in enumerate(path) if LAUNCHER in frame]
    return [frame for frame in path[launched[-1] + 1 if launched else 0 :] if not any(own in frame for own in OWN)]


def program_frames(stack: Sequence[str], depth: int) -> tuple[str, ...]:
    """The innermost frames outside PyTorch, innermost first; those inside it where there are no others.

    >>> program_frames(["torch/nn/modules/linear.py(12): forward", "train.py(7): step", "train.py(20): <module>"], 1)
    ('train.py(7): step',)
    """
    path = call_path(stack)[::-1]
    outside = [frame for frame in path if not frame.startswith(INSIDE_TORCH)]
    return tuple((outside or path)[:depth])
