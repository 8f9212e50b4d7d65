"""The purpose of memory, by the frames that allocated it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["purpose"]

_MODULE: Final = r".*torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): "
_PURPOSES: Final = (
    ("optimizer", re.compile(r".*torch[/\\]optim[/\\]")),
    ("communication", re.compile(r".*torch[/\\]distributed[/\\]|.*\bc10d::")),
    ("workspace", re.compile(r".*(getCUDABlas\w*Workspace|getNewWorkspace|[cC]u(blas|DNN|dnn)\w*Workspace)")),
    ("backward", re.compile(r".*torch[/\\]autograd[/\\]|.*torch::autograd::(Engine|python::PythonEngine)")),
    ("parameters", re.compile(_MODULE + r"(_apply|convert|to|cuda)$|.*torch[/\\]nn[/\\](parameter|init)\.py")),
    ("forward", re.compile(_MODULE + r"(_call_impl|_wrapped_call_impl)$")),
)
"""The first that any frame matches."""


def purpose(stack: Sequence[str]) -> str:
    """Return what an allocation is for, in a word.

    That is "optimizer", "communication", "workspace" (of a library), "backward", "parameters", "forward" (activations),
    or "other"; "unknown" without a stack.

    Args:
        stack: frames, innermost first, as "train.py(34): step".

    >>> purpose(["torch/optim/adam.py(150): _init_group", "train.py(9): step"]), purpose([])
    ('optimizer', 'unknown')
    """
    if not stack:
        return "unknown"
    found = (name for name, pattern in _PURPOSES if any(pattern.match(frame) for frame in stack))
    return next(found, "other")
