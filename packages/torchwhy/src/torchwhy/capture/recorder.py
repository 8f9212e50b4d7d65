"""One `torch.profiler.profile` at work: start, steps, stop, and the windows it recorded."""

from __future__ import annotations

import atexit
import gc
import gzip
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from torchwhy.capture.containment import is_programs
from torchwhy.capture.main_thread import raise_after
from torchwhy.capture.open_calls import detach_labels
from torchwhy.capture.options import Options
from torchwhy.capture.processor_time import ProcessorMark, ProcessorTime
from torchwhy.capture.python_calls import ProfilingFunctionKept, profiles_itself
from torchwhy.capture.schedule import Phase, Schedule
from torchwhy.capture.stack_samples import StackSampler, StackSamples
from torchwhy.counters.compiler import Compiled, CompilerMark

__all__ = ["Recorder", "Window"]


COLLECTION: Final = "Python GC"
"""The label of a garbage collection."""


@dataclass(frozen=True)
class Window:
    """One stretch of recorded steps.

    Attributes:
        trace: the exported timeline, plain JSON.
        results: PyTorch's own `_ProfilerResult`.
        steps: how many steps it holds, the one in which it was stopped included.
        compiled: what `torch.compile` did meanwhile.
        spent: what the recording thread's time went to meanwhile.
        samples: where its Python was.
    """

    trace: Path
    results: Any
    steps: int
    compiled: Compiled
    spent: ProcessorTime
    samples: StackSamples

    @property
    def size(self) -> int:
        """How many events PyTorch keeps."""
        return self._looked_at[0]

    @property
    def first_s(self) -> float | None:
        """When the first operator began, in seconds after the window did; None where no operator ran."""
        return self._looked_at[1]

    @property
    def on_device(self) -> bool:
        """Whether any work of a device was recorded."""
        from torch._C._autograd import DeviceType

        return any(event.device_type() != DeviceType.CPU for event in self.results.events())

    @cached_property
    def _looked_at(self) -> tuple[int, float | None]:
        """How many events there are, and when the first operator began; to hand them to Python takes 5 us each."""
        events = self.results.events()  # in the order of their beginnings
        first = next((event.start_ns() for event in events if event.name() != COLLECTION), None)
        return len(events), None if first is None else (first - self.results.trace_start_ns()) / 1e9


class Recorder:
    """Records the windows of a schedule, or everything between `start` and `stop`.

    Args:
        options: what to record besides names and times.
        activities: of which devices, such as ("cpu", "cuda").
        schedule: which steps; None records everything as one window.
        folder: where timelines are exported to.
        passed: steps of the schedule that have passed already.
        ready: is called with the `torch.profiler.profile` at the end of each window that is kept.

    Attributes:
        schedule: as given; a longer one may take its place while its window is open.
        windows: what was recorded so far.
        busy: true while this recorder itself is inside the profiler, to separate its calls from other people's.
        thread: the one that made it, in which it is to be stopped.
    """

    def __init__(
        self, options: Options, activities: tuple[str, ...], schedule: Schedule | None, folder: Path, passed: int = 0,
        ready: Callable[[Any], None] | None = None,
    ) -> None:  # fmt: skip
        """Make the profiler; `start` starts it."""
        self.windows: list[Window] = []
        self.busy = False
        self.running = False
        self._stopping = threading.RLock()
        self._process = os.getpid()
        self.thread = threading.get_ident()
        self.options, self._activities = options, activities
        self.schedule, self._passed, self._ready = schedule, passed, ready
        self._folder = folder
        self._keep = True
        self._torn = False  # whether an error has interrupted the profiler; it may crash when it ends a window then
        self._steps = 0  # of the window that is open
        self._began: _Beginning | None = None  # of the window that is open
        self._collections: _Collections | None = None  # from the start on
        self._meanwhile: tuple[Compiled, ProcessorTime, StackSamples] | None = None  # from there to its end
        self._profiler: Any = _profile_without_inductor()(
            schedule=self._action if schedule else None,  # asked again for each step
            on_trace_ready=self._save,
            **options.for_torch(activities),
        )

    def add_stacks(self) -> None:
        """Record stacks too, in windows that have not begun to warm up."""
        self.options = replace(self.options, stacks=True)
        settings = self.options.for_torch(self._activities)
        for name in ("with_stack", "experimental_config"):
            setattr(self._profiler, name, settings[name])

    def successor(self, all_threads: bool) -> Recorder:
        """Return a recorder of the same, of all threads or of this one; it keeps the windows and adds to them."""
        options = replace(self.options, all_threads=all_threads)
        after = Recorder(options, self._activities, self.schedule, self._folder, ready=self._ready)
        after.windows = self.windows
        after._profiler.stacks_refused = self.stacks_refused
        return after

    @property
    def stacks_refused(self) -> bool:
        """Whether stacks were not recorded in some window because the program profiles its calls itself."""
        return bool(self._profiler.stacks_refused)

    def start(self) -> None:
        """Begin; without warm-up and wait, recording starts here."""
        self._collections = collections = _Collections()
        atexit.register(self.abort)
        self._profiler.may_record_calls = not profiles_itself()
        with ProfilingFunctionKept(), self._inside():
            self._profiler.start()
            for _ in range(self._passed):
                self._profiler.step()
        collections.watch()
        self.running = True
        self._mark_beginning(self._passed)

    def step(self) -> None:
        """One step is over, the next begins."""
        ends = self.schedule is not None and self.schedule.ends_window(self._profiler.step_num)
        if ends and self.schedule is not None and self.schedule.grows:
            self.stop()
        if self.running:
            self._count_step()
            if ends:
                self._mark_end()
            self._profiler.may_record_calls = not profiles_itself()
            with ProfilingFunctionKept(), self._inside():
                self._profiler.step()
            self._mark_beginning(self._profiler.step_num)

    def salvage(self) -> list[Window]:
        """The windows, and what was stopped without being kept; for when nothing better came."""
        if self._profiler.profiler is not None and self.schedule is None and not self._torn:
            self._keep = True
            self._save(self._profiler)
        return self.windows

    def stop(self, keep: bool = True) -> None:
        """End; a window that is open is kept as it is, or not exported. Whoever comes second waits for the first."""
        with self._stopping:
            if not self.running:
                return
            if self._torn:
                self.abort()
                return
            self.running = False
            if self._collections is not None:
                self._collections.remove()
            self._keep = keep
            self._count_step()
            self._mark_end()
            with ProfilingFunctionKept(), self._inside():
                self._profiler.stop()
            atexit.unregister(self.abort)

    def abort(self) -> None:
        """Record no more, in whatever state an error has left this; no call into PyTorch may be open.

        Python dies of a segmentation fault if a profiler still records when it ends (PyTorch 2.13).
        """
        if os.getpid() != self._process:
            return
        self.running = False
        if self._collections is not None:
            self._collections.forget()
        if self._began is not None:
            self._began.end()
        kineto = self._profiler.profiler
        if kineto is not None and kineto.entered and kineto.kineto_results is None and self._may_record():
            from torch._C._autograd import _disable_profiler

            with ProfilingFunctionKept():
                kineto.kineto_results = _disable_profiler()
            detach_labels()
        atexit.unregister(self.abort)

    def _may_record(self) -> bool:
        """Whether PyTorch may record; it shows that only for the thread that asks."""
        from torch._C._autograd import _profiler_enabled

        return _profiler_enabled() or self.options.all_threads or threading.get_ident() != self.thread

    def _action(self, step: int) -> Any:
        from torch.profiler import ProfilerAction

        assert self.schedule is not None
        if step < self._passed:
            return ProfilerAction.NONE
        if self.schedule.ends_window(step) and not self.schedule.grows:
            return ProfilerAction.RECORD_AND_SAVE
        names = {Phase.WAIT: "NONE", Phase.DONE: "NONE", Phase.WARMUP: "WARMUP", Phase.ACTIVE: "RECORD"}
        return ProfilerAction[names[self.schedule.phase(step)]]

    def _count_step(self) -> None:
        if self.schedule is not None and self.schedule.phase(self._profiler.step_num) is Phase.ACTIVE:
            self._steps += 1

    def _mark_beginning(self, step: int) -> None:
        """Remember where the compiler's records and the clocks stand, when a window begins."""
        recorded = self.schedule is None or self.schedule.phase(step) is Phase.ACTIVE
        if recorded and self._began is None:
            self._began = _Beginning()
            if self._collections is not None:
                self._collections.spent_ns = 0

    def _mark_end(self) -> None:
        """The same when it ends, before PyTorch takes its time to end it."""
        compiled, spent, samples = (self._began or _Beginning()).since()
        collecting_us = self._collections.spent_ns / 1000 if self._collections is not None else None
        self._meanwhile = compiled, replace(spent, collecting_us=collecting_us), samples

    def _save(self, profiler: Any) -> None:
        detach_labels()
        if self._keep:
            # Compressed only when the program has ended: its next steps should not wait for that.
            path = self._folder / f"window-{len(self.windows) + 1}.json"
            profiler.export_chrome_trace(str(path))
            compiled, spent, samples = self._meanwhile or _Beginning().since()
            results = profiler.profiler.kineto_results
            self.windows.append(Window(path, results, self._steps, compiled, spent, samples))
            self._began = self._meanwhile = None
            self._steps = 0
            if self._ready is not None:
                self._ready(profiler)
            profiler.saved = None
            profiler.profiler = None  # the next window gets its own; else PyTorch warns that these events go

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self.busy = True
        try:
            with _unseen():
                yield
        except BaseException:
            self._torn = True
            raise
        finally:
            self.busy = False


def _profile_without_inductor() -> Any:
    """Return `torch.profiler.profile`, but it does not import the compiler to ask whether that uses CUDA graphs.

    That takes 2 s, and who has not imported the compiler has not switched its graphs on.
    """
    import torch
    from torch.profiler import profile

    class Profile(profile):
        saved: Path | None = None
        """The timeline of this window; PyTorch writes it only once."""
        may_record_calls = True
        stacks_refused = False

        def export_chrome_trace(self, path: str, *args: Any, **kwargs: Any) -> Any:
            if self.saved is None:
                self.saved = Path(path)
                return super().export_chrome_trace(path, *args, **kwargs)
            opened = gzip.open if path.endswith(".gz") else open
            with self.saved.open("rb") as plain, opened(path, "wb") as copy:
                shutil.copyfileobj(plain, copy, 1 << 20)
            return None

        def start_trace(self) -> None:
            if self.with_stack and not self.may_record_calls and self.profiler is not None:
                self.with_stack = self.profiler.with_stack = False
                self.stacks_refused = True
            super().start_trace()

        def prepare_trace(self) -> None:
            names: set[str] = getattr(torch, "_lazy_modules", set())
            hidden = names & {"_inductor"} if "torch._inductor" not in sys.modules else set()
            names -= hidden
            try:
                super().prepare_trace()
            finally:
                names |= hidden

    return Profile


class _Beginning:
    """The beginning of a window."""

    def __init__(self) -> None:
        self._compiler, self._processor, self._stacks = CompilerMark(), ProcessorMark(), StackSampler()

    def end(self) -> None:
        """Sample no more stacks."""
        self._stacks.stop()

    def since(self) -> tuple[Compiled, ProcessorTime, StackSamples]:
        return self._compiler.since(), self._processor.since(), self._stacks.end()


def _unseen() -> Any:
    """Return a context in which labels, which are operators, are not passed to the program's dispatch modes."""
    import torch

    return torch._C._DisableTorchDispatch()


class _Collections:
    """Labels garbage collections in this thread, except for the frequent ones of the youngest objects.

    A collection may begin while the program looks through `sys.modules`, so a label must import nothing: the first one
    does (PyTorch 2.13), and is made here.

    Attributes:
        spent_ns: processor time of labelled collections; the recorder sets it to 0 when a window begins.
    """

    def __init__(self) -> None:
        from torch.autograd.profiler import record_function

        self._thread = threading.get_ident()
        self._record_function = record_function
        self._label: Any = None
        self._began_ns = self.spent_ns = 0
        self._trouble: BaseException | None = None
        with record_function(COLLECTION):
            pass

    def watch(self) -> None:
        gc.callbacks.append(self.note)

    def remove(self) -> None:
        """Label no more; raise what went wrong meanwhile."""
        self.forget()
        if self._trouble is not None:
            raise self._trouble

    def forget(self) -> None:
        """Label no more."""
        if self.note in gc.callbacks:
            gc.callbacks.remove(self.note)

    def note(self, phase: str, info: dict[str, int]) -> None:
        """See a collection begin or end; Python would only print an error."""
        try:
            if self._trouble is None:
                self._note(phase, info)
        except BaseException as error:  # noqa: BLE001
            if is_programs(error):
                raise_after(_Collections.note.__code__, error)
            else:
                self._trouble = error

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if threading.get_ident() != self._thread or not info["generation"]:
            return
        if phase == "start":
            self._began_ns = time.thread_time_ns()
            self._label = self._record_function(COLLECTION)
            with _unseen():
                self._label.__enter__()
        elif self._label is not None:
            label, self._label = self._label, None
            with _unseen():
                label.__exit__(None, None, None)
            self.spent_ns += time.thread_time_ns() - self._began_ns
