"""Memory at the end of each step: what the process has allocated, and tensors on the GPU."""

from __future__ import annotations

import sys
from typing import Any

from torchwhy.capture.main_thread import allocated_bytes

__all__ = ["StepMemory"]

MOST = 1000  # steps


class StepMemory:
    """Reads memory after each step.

    Resident memory would not do: an allocator keeps what was freed, in pieces that grow without a leak.

    Attributes:
        read: for each step its number, the bytes that malloc has handed out, and the bytes of all tensors on GPUs, 0
            where none is used.
    """

    def __init__(self) -> None:
        """Nothing has been read."""
        self.read: list[tuple[int, int, int]] = []

    def note(self, step: int) -> None:
        """A step with this number has ended; where malloc does not show it, and after many steps, do nothing."""
        if len(self.read) < MOST:
            held = allocated_bytes()
            if held is not None:
                self.read.append((step, held, _on_devices()))


def _on_devices() -> int:
    cuda: Any = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return 0
    return sum(cuda.memory_allocated(device) for device in range(cuda.device_count()))
