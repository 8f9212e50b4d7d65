"""What a count keeps of single events: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Compilation", "CopyTotal", "GraphBreak", "Sync"]


@dataclass(frozen=True)
class Sync:
    """A place where the host waited for a device, and how often it did.

    Args:
        operator: the operator or function that waited, `aten::_local_scalar_dense` for `.item()`.
        where: the line of the program that called it, `file.py:12 in step`.
        times: how often.
    """

    operator: str
    where: str
    times: int


@dataclass(frozen=True)
class CopyTotal:
    """All copies of one kind: how many and how many bytes arrived, None where that is not known."""

    times: int | None = 0
    bytes: int | None = 0


@dataclass(frozen=True)
class GraphBreak:
    """A reason for which `torch.compile` cut a graph in two, and how often while compiling."""

    reason: str
    where: str
    times: int


@dataclass(frozen=True)
class Compilation:
    """A frame that `torch.compile` compiled anew although it had compiled code for it.

    Args:
        function: the name of the compiled function.
        where: `file.py:12`, its first line.
        reason: the guard that failed, as `torch._dynamo` words it.
    """

    function: str
    where: str
    reason: str
