"""What is written when a program runs out of memory: a snapshot of the GPU's allocator, or the request that failed."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from torchwhy.capture.containment import described
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.wording import size_text

__all__ = ["OutOfMemoryWatch"]

_ENTRIES: Final = 100_000
"""Allocations and releases that the allocator remembers, the last ones; each takes a few kilobytes with its stack."""

_HOST: Final = re.compile(r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): .*?allocate (\d+) bytes")
"""PyTorch's message if the operating system refuses memory of the host."""


class OutOfMemoryWatch:
    """Writes a snapshot when the GPU's allocator is about to raise an error; a later one replaces it.

    Args:
        path: of the snapshot.

    Attributes:
        notes: what happened, for the report.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self._process = os.getpid()

    def attach(self) -> None:
        """Let the allocator remember its history and call before it raises. CUDA must be initialised."""
        import torch

        try:
            torch.cuda.memory._record_memory_history(max_entries=_ENTRIES, stacks="python")
            native: Any = torch._C  # the name is there in builds for CUDA and HIP only
            native._cuda_attach_out_of_memory_observer(self._before_error)
        except Exception as error:  # noqa: BLE001 - the program must not meet it
            self.notes.append(f"no snapshot is written when memory runs out: {described(error)}")

    def _before_error(self, device: int, requested: int, total: int, free: int) -> None:
        """Write the snapshot while the memory is still held; what goes wrong must not replace the program's error."""
        import torch

        if os.getpid() != self._process:
            return
        partial = self.path.with_name(f".{self.path.name}.partial")
        said = (
            f"GPU {device} ran out of memory: {size_text(requested)} requested, {size_text(free)} of "
            f"{size_text(total)} free"
        )
        try:
            torch.cuda.memory._dump_snapshot(str(partial))
            partial.replace(self.path)
        except Exception as error:  # noqa: BLE001 - as above
            partial.unlink(missing_ok=True)
            self.notes = [f"{said}; no snapshot was written: {described(error)}"]
        else:
            self.notes = [f"{said}; torchwhy memory {shlex.quote(str(self.path))} shows who holds it"]

    def ended_by(self, error: BaseException) -> None:
        """Note what an error says about the host's memory, which has no allocator with a history."""
        found = _HOST.search(str(error))
        if isinstance(error, RuntimeError) and found:
            asked = f"{size_text(int(found[1]))} requested"
        elif isinstance(error, MemoryError):
            asked = "Python could not allocate an object"
        else:
            return
        line = own_frame(_stack(error.__traceback__))
        where = f" at {line}" if line else ""
        self.notes.append(
            f"the host ran out of memory: {asked}{where}; {_resident()}who holds it is not known on the CPU: "
            "--memory records allocations"
        )


def _stack(traceback: TracebackType | None) -> list[str]:
    """The frames an error went through, innermost first."""
    found: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append(f"{Path(code.co_filename).name}({traceback.tb_lineno}): {code.co_name}")
        traceback = traceback.tb_next
    return found[::-1]


def _resident() -> str:
    """The most memory that the process had, where the system reports it."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    unit = 1 if sys.platform == "darwin" else 1024
    return f"the process had {size_text(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)} at most; "
