"""Names of parts of the window and of verdicts. As JSON each is its text."""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["HOST_STALLS", "Group", "PartName", "VerdictKind"]


class _Name(str, Enum):
    """A text from a fixed set; another text is a ValueError, a misspelt member an AttributeError."""

    __str__ = str.__str__


class PartName(_Name):
    """Parts of the window, `Part.name`."""

    COMPUTING = "computing"
    COMMUNICATION = "communication"
    COPIES = "copies"
    PROFILER = "profiler"
    DATA = "data"
    COMPILING = "compiling"
    CAPTURE = "capture"
    ENDED = "ended"
    QUEUED = "queued"
    ALLOCATION = "allocation"
    WAITING = "waiting"
    DISPATCH = "dispatch"
    WRAPPER = "wrapper"
    OPTIMIZER = "optimizer"
    BACKWARD = "backward"
    OPERATORS = "operators"
    PYTHON = "python"
    UNKNOWN = "unknown"


HOST_STALLS: Final = (
    PartName.ALLOCATION,
    PartName.WAITING,
    PartName.DISPATCH,
    PartName.WRAPPER,
    PartName.PYTHON,
)
"""Parts in which a device waits for the host's program."""


class Group(_Name):
    """Groups of parts: work of the device, its idle time by what the host does, or a program without a device."""

    GPU = "gpu"
    IDLE = "idle"
    HOST = "host"


class VerdictKind(_Name):
    """The limit of a program."""

    COMPUTE = "compute-bound"
    OVERHEAD = "overhead-bound"
    INPUT = "input-bound"
    COMMUNICATION = "communication-bound"
    COPY = "copy-bound"
    COMPILE = "compile-bound"
    MIXED = "mixed"
    UNKNOWN = "unknown"

    @property
    def label(self) -> str:
        """The kind for people."""
        return {VerdictKind.MIXED: "no single limit", VerdictKind.UNKNOWN: "can't tell"}.get(self, self.value)
