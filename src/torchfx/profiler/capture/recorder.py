"""One `torch.profiler.profile` at work: start, steps, stop, and the windows it recorded."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchfx.profiler.capture.open_calls import detach_labels
from torchfx.profiler.capture.options import Options
from torchfx.profiler.capture.schedule import Phase, Schedule
from torchfx.profiler.counters.compiler import Compiled, CompilerMark

__all__ = ["Recorder", "Window"]


@dataclass(frozen=True)
class Window:
    """One stretch of recorded steps.

    Attributes:
        trace: the exported timeline, plain JSON.
        results: PyTorch's own `_ProfilerResult`.
        steps: how many steps it holds, the one in which it was stopped included.
        compiled: what `torch.compile` did meanwhile.
    """

    trace: Path
    results: Any
    steps: int
    compiled: Compiled

    @property
    def size(self) -> int:
        """How many events PyTorch keeps."""
        return len(self.results.events())


class Recorder:
    """Records the windows of a schedule, or everything between `start` and `stop`.

    Args:
        options: what to record.
        cuda: whether to record the GPU.
        schedule: which steps; None records everything as one window.
        folder: where timelines are exported to.

    Attributes:
        windows: what was recorded so far.
        busy: true while this recorder itself is inside the profiler, to tell its calls from other people's.
    """

    def __init__(self, options: Options, cuda: bool, schedule: Schedule | None, folder: Path) -> None:
        """Make the profiler; `start` starts it."""
        from torch.profiler import profile

        self.windows: list[Window] = []
        self.busy = False
        self.running = False
        self._options, self._cuda = options, cuda
        self._schedule = schedule
        self._folder = folder
        self._keep = True
        self._steps = 0  # of the window that is open
        self._mark: CompilerMark | None = None
        self._compiled: Compiled | None = None
        self._profiler: Any = profile(
            schedule=self._action if schedule else None,
            on_trace_ready=self._save,
            **options.for_torch(cuda),
        )

    def successor(self) -> Recorder:
        """Return a recorder of the same, which keeps the windows of this one and adds to them."""
        after = Recorder(self._options, self._cuda, self._schedule, self._folder)
        after.windows = self.windows
        return after

    def start(self) -> None:
        """Begin; without warm-up and wait, recording starts here."""
        with self._inside():
            self._profiler.start()
        self._collections = _Collections()
        self.running = True
        self._mark_compiler(0)

    def step(self) -> None:
        """One step is over, the next begins."""
        if self.running:
            self._count_step()
            with self._inside():
                self._profiler.step()
            self._mark_compiler(self._profiler.step_num)

    def salvage(self) -> list[Window]:
        """The windows, and what was stopped without being kept; for when nothing better came."""
        if self._profiler.profiler is not None and self._schedule is None:
            self._keep = True
            self._save(self._profiler)
        return self.windows

    def stop(self, keep: bool = True) -> None:
        """End; a window that is open is kept as it is, or not exported."""
        if not self.running:
            return
        self.running = False
        self._collections.remove()
        self._keep = keep
        self._count_step()
        self._compiled = self._mark.since() if self._mark else None
        with self._inside():
            self._profiler.stop()

    def _action(self, step: int) -> Any:
        from torch.profiler import ProfilerAction

        assert self._schedule is not None
        if self._schedule.ends_window(step):
            return ProfilerAction.RECORD_AND_SAVE
        names = {Phase.WAIT: "NONE", Phase.DONE: "NONE", Phase.WARMUP: "WARMUP", Phase.ACTIVE: "RECORD"}
        return ProfilerAction[names[self._schedule.phase(step)]]

    def _count_step(self) -> None:
        if self._schedule is not None and self._schedule.phase(self._profiler.step_num) is Phase.ACTIVE:
            self._steps += 1

    def _mark_compiler(self, step: int) -> None:
        """Remember where the compiler's records stand, when a window begins."""
        recorded = self._schedule is None or self._schedule.phase(step) is Phase.ACTIVE
        if recorded and self._mark is None:
            self._mark = CompilerMark()

    def _save(self, profiler: Any) -> None:
        detach_labels()
        if self._keep:
            # Compressed only when the program has ended: its next steps should not wait for that.
            path = self._folder / f"window-{len(self.windows) + 1}.json"
            profiler.export_chrome_trace(str(path))
            compiled = self._compiled or (self._mark or CompilerMark()).since()
            self.windows.append(Window(path, profiler.profiler.kineto_results, self._steps, compiled))
            self._mark, self._steps = None, 0
            profiler.profiler = None  # the next window gets its own; else PyTorch warns that these events go

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self.busy = True
        try:
            yield
        finally:
            self.busy = False


class _Collections:
    """Labels garbage collections in this thread until `remove`, but for the frequent ones of the youngest objects."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._label: Any = None
        gc.callbacks.append(self._note)

    def remove(self) -> None:
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        from torch.autograd.profiler import record_function

        if threading.get_ident() != self._thread or not info["generation"]:
            return
        if phase == "start":
            self._label = record_function("Python GC")
            self._label.__enter__()
        elif self._label is not None:
            label, self._label = self._label, None
            label.__exit__(None, None, None)
