"""From windows to a folder: say what was wrong, write, rename."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchwhy.capture import advice, writer
from torchwhy.capture.advice import Spelling
from torchwhy.capture.containment import described, is_programs
from torchwhy.capture.folder import RunFolder
from torchwhy.capture.options import Options
from torchwhy.capture.power_samples import PowerSampler
from torchwhy.capture.recorder import Window
from torchwhy.capture.result import WHOLE_RUN, Capture
from torchwhy.capture.run_watch import RunTimes
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.step_clock import Overhead
from torchwhy.capture.step_counts import write_counts
from torchwhy.wording import counted

if TYPE_CHECKING:
    from torchwhy.capture.contents import Contents

__all__ = ["Run", "finish"]


@dataclass(frozen=True)
class Run:
    """A recording that is over.

    Attributes:
        folder: claimed for it.
        command: the command line.
        spelling: how the caller spells settings.
        ended: how the program ended.
        steps_from: what marks a step.
        before: steps that passed before the schedule began.
        steps: steps of the schedule that ended; None where there was no schedule.
        schedule: which steps were to be recorded.
        windows: what was recorded.
        salvaged: whether that is the beginning of the run, since no window with steps began.
        cut: whether a recording of everything is only a part of the run.
        options: what was recorded.
        activities: of which devices.
        overhead: what recording cost; None where there was no schedule.
        unrecorded: number and microseconds of the steps that ran unprofiled.
        memory: see `StepMemory.read`.
        notes: what did not go as asked.
        gave_up: whether recording ended for a reason that is among them.
        launched: whether the program knows nothing of this.
        own: what the program itself recorded: timelines, and folders of runs.
        power: what was read of the GPUs meanwhile.
        run_times: where the time of the whole run went; None where that is not known.
        contents: what the contents of tensors showed; None where they were not watched.
    """

    folder: RunFolder
    command: tuple[str, ...]
    spelling: Spelling
    ended: str
    steps_from: str
    before: int
    steps: int | None
    schedule: Schedule
    windows: tuple[Window, ...]
    salvaged: bool
    cut: bool
    options: Options
    activities: tuple[str, ...]
    overhead: Overhead | None
    unrecorded: Sequence[tuple[int, float]]
    memory: Sequence[tuple[int, int, int]]
    notes: tuple[str, ...]
    gave_up: bool
    launched: bool
    own: tuple[Path, ...] = ()
    power: PowerSampler | None = None
    run_times: RunTimes | None = None
    contents: Contents | None = None

    @property
    def cuda(self) -> bool:
        """Whether a GPU was recorded."""
        return bool({*self.activities} - {"cpu"})


def finish(run: Run) -> Capture:
    """Write what was recorded; without a single event, remove the folder.

    What is lost last comes first: the traces are whole in their folder before PyTorch's results are read.
    """
    try:
        if any(window.size for window in run.windows):
            return _write(run)
    except Exception as error:
        if is_programs(error):
            raise
        partial = run.folder.partial
        lies = f"what there is lies in {partial}" if partial.is_dir() else "the program has removed the folder"
        return _capture(run, [], [f"not everything could be written, {lies}: {described(error)}"])
    run.folder.discard()
    return _capture(replace(run, salvaged=False), [], [])


def _write(run: Run) -> Capture:
    folder = run.folder.partial
    writer.write_traces(
        folder, run.windows, run.options.tensorboard, run.unrecorded, run.memory, run.run_times, run.power, run.contents
    )
    notes = write_counts(folder, run.windows, run.options, run.cuda)
    capture = _capture(run, run.windows, notes)
    writer.write_run(folder, capture)
    run.folder.publish()
    return capture


def _capture(run: Run, windows: Sequence[Window], notes: Sequence[str]) -> Capture:
    return Capture(
        folder=run.folder.final if windows else None,
        command=run.command,
        ended=run.ended,
        steps_from=run.steps_from,
        steps_seen=0 if run.steps is None else run.before + run.steps,
        steps_recorded=sum(window.steps for window in windows),
        schedule=None if run.steps is None else run.schedule,
        windows=len(windows),
        cut=run.cut,
        options=run.options,
        cuda=run.cuda,
        overhead=run.overhead,
        operators=(),
        problems=(*run.notes, *notes, *_problems(run, windows, bool(notes))),
        hints=tuple(_hints(run, windows)),
        own=run.own,
    )


def _hints(run: Run, windows: Sequence[Window]) -> Iterator[str]:
    yield from advice.about_cost(run.overhead, run.options)
    yield from advice.about_contents(run.contents)
    yield from advice.about_machine(window.spent for window in windows)
    if windows and run.cuda and not any(window.on_device for window in windows):
        yield (
            "the GPU was recorded and ran nothing: either the program did not use it, or CUPTI was refused (another "
            "profiler, missing permission; KINETO_LOG_LEVEL=1 says which)"
        )


def _problems(run: Run, windows: Sequence[Window], explained: bool) -> Iterator[str]:
    if run.steps is not None and not run.gave_up:
        count = 0 if run.salvaged else len(windows)
        steps = advice.Steps(run.before, run.steps, count, run.salvaged)
        yield from advice.about_steps(run.schedule, steps, run.spelling)
        if run.launched and run.before and not run.schedule.wait:
            yield (
                f"{counted(run.before, 'step')} had passed before steps were found, the first call and what it "
                "compiles among them; --step-on MODULE:NAME records a function from its first call, --step-on none "
                "everything"
            )
    elif run.steps_from == WHOLE_RUN and not windows and not run.notes and not explained:
        ranks = (
            ", nor in threads that it started; `with torchwhy.profile() as p:` with p.step() in another thread records "
            "that one; child processes are not seen, profile those of torchrun with: torchrun ... -m torchwhy profile "
            "SCRIPT"
        )
        yield f"nothing was recorded: no PyTorch operator ran in the main thread{ranks if run.launched else ''}"
    if run.options.device_asked and not run.cuda and run.activities:
        yield "recording the GPU was requested, and PyTorch has no GPU here; only the CPU was recorded"
