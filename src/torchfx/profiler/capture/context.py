"""`with profile(...) as p:` around a loop, `p.step()` at the end of each turn."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import TracebackType

from torchfx.errors import ArgumentTypeError
from torchfx.profiler.capture.advice import Spelling
from torchfx.profiler.capture.options import Options
from torchfx.profiler.capture.result import Capture, ProfileWarning
from torchfx.profiler.capture.schedule import Schedule
from torchfx.profiler.capture.session import Session

__all__ = ["profile"]


class profile:  # noqa: N801  (spelled as torch.profiler.profile is)
    """Record some steps of a loop with `torch.profiler`, and write a folder that says where the time went.

    The first steps run unprofiled, as do those after the last window: their time is the baseline that the profiler's
    own cost is reported against. Nothing that goes wrong with profiling stops the program; it is told as a
    `ProfileWarning` at the end of the block.

    Args:
        path: the folder to write; if it exists, `path-2`, `path-3`, ... Under torchrun each rank writes
            `path/rank0` and so on. It appears when it is complete.
        wait: steps that run unprofiled before each window, >= 0.
        warmup: steps under the profiler that are dropped, >= 0.
        active: steps recorded, >= 1.
        repeat: number of windows, >= 1.
        shapes: record the sizes of the operators' inputs.
        memory: record every allocation; adds `memory.json`.
        stacks: record Python stacks; adds a table by stack and folded stacks, and makes steps much longer.
        flops: estimate floating point operations.
        modules: record the module hierarchy where TorchScript knows it.
        cuda: record the GPU; None records it where there is one.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        tensorboard: also write what TensorBoard's profiler plugin reads, into `tensorboard/`.

    Attributes:
        result: the `Capture` after the block; `print(p.result)` shows it.

    Raises:
        ArgumentError: a step count out of its range.
        ArgumentTypeError: a path that is none.

    >>> import tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> with profile(folder + "/run", wait=1, warmup=1, active=2) as p:
    ...     for _ in range(6):
    ...         y = torch.ones(64).cos()
    ...         p.step()
    >>> p.result.breakdown.steps, [row.calls for row in p.result.operators if row.name == "aten::cos"]
    (2, [2])
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "traces/run",
        *,
        wait: int = 3,
        warmup: int = 1,
        active: int = 3,
        repeat: int = 1,
        shapes: bool = True,
        memory: bool = False,
        stacks: bool = False,
        flops: bool = False,
        modules: bool = False,
        cuda: bool | None = None,
        sync_events: bool = True,
        tensorboard: bool = False,
    ) -> None:
        """Check and keep the settings; nothing is claimed or recorded yet."""
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError(f"path must name a folder, got {path!r}")
        self.result: Capture | None = None
        self._path = Path(path)
        self._schedule = Schedule(wait, warmup, active, repeat)
        self._options = Options(shapes, memory, stacks, flops, modules, cuda, sync_events, tensorboard)
        self._session: Session | None = None

    def __enter__(self) -> profile:
        """Claim the folder and begin the schedule with the first step."""
        command = [sys.executable, *sys.argv]
        self._session = Session(
            self._path, self._schedule, self._options, command, Spelling("{}={}", ", "), eager_cuda=True
        )
        self._session.open()
        self._session.record_steps("p.step()", before=0)
        return self

    def step(self) -> None:
        """Say that one step has ended and the next begins; outside the block this does nothing."""
        if self._session is not None:
            self._session.step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write the folder, whatever ended the block."""
        session, self._session = self._session, None
        if session is None:
            return
        self.result = session.close("finished" if kind is None else kind.__name__)
        if self.result is not None:
            for note in self.result.problems:
                warnings.warn(note, ProfileWarning, stacklevel=2)
