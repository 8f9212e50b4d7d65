"""Memory that `torchwhy profile` read at the end of each step, those that it didn't record included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import Int64

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["STEP_MEMORY", "StepMemory", "step_memory"]

STEP_MEMORY: Final = "torchwhy_step_memory"
"""Key in the trace's top level: a list of [number of the step, bytes of the process, bytes of tensors on GPUs]."""


@dataclass(frozen=True)
class StepMemory:
    """Bytes at the ends of steps.

    Attributes:
        name: whose they are, such as "The process".
        steps: numbers.
        held: bytes.
    """

    name: str
    steps: Int64
    held: Int64


def step_memory(trace: Trace) -> tuple[StepMemory, ...]:
    """Return the memory of the process and of tensors on GPUs; () for other recordings or steps in another order."""
    written = trace.info.top.get(STEP_MEMORY)
    rows = written if isinstance(written, list) else []
    whole = [row for row in rows if isinstance(row, list) and len(row) == 3 and all(isinstance(n, int) for n in row)]
    if not whole:
        return ()
    table = np.array(whole, np.int64)
    if (np.diff(table[:, 0]) <= 0).any():
        return ()
    return tuple(
        StepMemory(name, table[:, 0], table[:, i])
        for i, name in ((1, "The process"), (2, "The GPU"))
        if table[:, i].any()
    )
