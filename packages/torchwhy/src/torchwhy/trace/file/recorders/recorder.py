"""A recorder whose files are databases, declared: how to know one, and what to read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torchwhy.trace.file.recorders.database import Database

__all__ = ["DatabaseRecorder", "Numbering"]


@dataclass(frozen=True)
class DatabaseRecorder:
    """What writes databases of one schema.

    Attributes:
        name: for people.
        operators: how to record the operators of PyTorch, too.
        knows: whether a database is one of its files.
        check: raises TraceError where it holds nothing that a trace is made of.
        top: the values besides the events: devices, the time they are counted from.
        events: the events, as `trace_text.event` returns them.
    """

    name: str
    operators: str
    knows: Callable[[Database], bool]
    check: Callable[[Database], None]
    top: Callable[[Database], dict[str, Any]]
    events: Callable[[Database], Iterator[str]]


class Numbering:
    """Correlation ids of several processes in one file: those of a process follow those of the one before.

    Args:
        highest: the highest id of each process.
    """

    def __init__(self, highest: dict[object, int]) -> None:
        self._first: dict[object, int] = {}
        following = 0
        for process, last in highest.items():
            self._first[process] = following
            following += max(last, 0) + 1

    def of(self, process: object, number: int | None) -> int | None:
        """Return the id in the trace of a process's id; 0 and None, which link nothing, stay."""
        return number + self._first.get(process, 0) if number else number
