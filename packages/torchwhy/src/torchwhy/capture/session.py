"""One capture from claiming its folder to the last step: what the context manager and the command share."""

from __future__ import annotations

import functools
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from torchwhy.capture import cuda_graphs, other_profilers
from torchwhy.capture.advice import BUSY, Spelling, waited_share
from torchwhy.capture.containment import contained, described, is_programs
from torchwhy.capture.finish import Run, finish
from torchwhy.capture.folder import PARTIAL, RunFolder, claim, claim_temporary, rank_of
from torchwhy.capture.main_thread import whenever
from torchwhy.capture.open_calls import inside_pytorch
from torchwhy.capture.options import ACTIVITIES, Options
from torchwhy.capture.power_samples import PowerSampler, nvml, uuids
from torchwhy.capture.python_calls import PythonCalls, most_steps, worth_recording
from torchwhy.capture.recorder import Recorder, Window
from torchwhy.capture.result import WHOLE_RUN, Capture
from torchwhy.capture.run_watch import RunTimes
from torchwhy.capture.schedule import ACTIVE, Phase, Schedule
from torchwhy.capture.step_clock import NEAR, Overhead, StepClock
from torchwhy.capture.step_memory import StepMemory
from torchwhy.wording import counted

if TYPE_CHECKING:
    from torchwhy.capture.contents import Contents, ContentsWatch

__all__ = ["MOST", "Session"]

MOST = 200_000  # events of all windows

F = TypeVar("F", bound=Callable[..., None])
P = ParamSpec("P")
R = TypeVar("R")


def _contained(method: F) -> F:
    """Turn trouble with the profiler into a note and stop recording, so that the program runs on."""

    @functools.wraps(method)
    def run(self: Session, *args: Any, **kwargs: Any) -> None:
        if not self.stopped or self._failed:
            self._attempt(method, self, *args, **kwargs)

    return run  # type: ignore[return-value]


class Session:
    """Records into a folder; nothing that goes wrong with the profiler reaches the program: that becomes a note.

    Args:
        path: the run's folder; `path-2` and so on if it is taken.
        schedule: which steps are recorded.
        options: what is recorded.
        command: the command line.
        spelling: how the caller spells settings, for advice.
        launched: whether the program knows nothing of this. Then the GPU is recorded only when the program has used it:
            looking for it fixes which devices are visible. And recording ends where the program records itself.
        ready: is called with the `torch.profiler.profile` at the end of each window.

    Attributes:
        notes: what did not go as asked.
        stopped: true when recording has ended for good.
        gave_up: true when that is for a reason given in `notes`.
        exported: timelines that other profilers have written.
        cut: true when a recording of everything is only a part of the run.
        made_room: true when recording ended because the program records itself.
        steps_from: what marks a step.
        before: steps that passed before the schedule began.
        inside: steps that could not end where they did.
        recorder: what records now.
        memory: what was read of it after each step.
        beginning: what recorded before steps were found, until there is a window with steps.
        run_times: where the time of the whole run went; None where that is not known.
    """

    def __init__(
        self, path: Path, schedule: Schedule, options: Options, command: list[str], spelling: Spelling, launched: bool,
        ready: Callable[[Any], None] | None = None,
    ) -> None:  # fmt: skip
        """Claim the folder, so that trouble with it is known before the program runs."""
        # Ranks are compared step by step, so all record as many.
        self.schedule = replace(schedule, grows=schedule.grows and rank_of() is None)
        self.options, self.command, self.spelling = options, tuple(command), spelling
        self.notes: list[str] = []
        self.stopped = self.gave_up = self.cut = self.made_room = False
        self.steps_from = WHOLE_RUN
        self.before = self.inside = 0
        self.activities: tuple[str, ...] = ()
        self.ready = ready
        self.process = os.getpid()
        self.recorder: Recorder | None = None
        self.beginning: Recorder | None = None
        self.clock: StepClock | None = None
        self.launched, self.eager_cuda = launched, not launched
        self.exported: list[Path] = []
        self.memory = StepMemory()
        self._power: PowerSampler | None = None  # from the first recording of a GPU on
        self.run_times: RunTimes | None = None
        self._unwatch: Callable[[], None] | None = None
        self._contents: ContentsWatch | None = None  # from the end of the windows on
        self._contents_are_over = not options.contents
        self._watch_no_more: Callable[[], None] = lambda: None
        self._after_windows = 0  # steps, with which recorded ones are compared
        self._calls: PythonCalls | None = None  # while they are counted
        self._calls_a_step = 0  # where stacks are recorded because calls are few
        self._failed = False  # whether an error has ended the recording
        self._clean = True  # whether nothing is left to end after an error
        self.folder = self._claim(path)

    def contain(self, act: Callable[P, R]) -> Callable[P, R | None]:
        """Return a function for the program to call unknowingly: its errors end the recording.

        After an error, and in a forked child, since the recording is its parent's, it does nothing and returns None.
        """

        @functools.wraps(act)
        def run(*args: P.args, **kwargs: P.kwargs) -> R | None:
            return self._attempt(act, *args, **kwargs)

        return run

    def _attempt(self, act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        if os.getpid() != self.process:
            return None
        if self._failed:
            self._clean_up()
            return None
        return contained(act, self.fail)(*args, **kwargs)

    def fail(self, error: Exception) -> None:
        """Record nothing more because of an error; windows that are whole are kept."""
        note = f"the profiler stopped: {described(error)}"
        if note not in self.notes:
            self.give_up(note)
        self._failed, self._clean = True, False
        self._clean_up()

    def _clean_up(self, at_end: bool = False) -> None:
        """End what an error has left at work: now, or when this is called where a recording may end."""
        if self._clean or not (at_end or contained(self._may_clean_up, self._note_error)()):
            return
        self._clean = True
        ends: list[Callable[[], object]] = [self._counted_calls, self._watch_no_more]
        ends += [one.end for one in (self._contents, self._power) if one is not None]
        ends += [self.recorder.abort] if self.recorder is not None else []
        for end in ends:
            contained(end, self._note_error)()

    def _may_clean_up(self) -> bool:
        recorder = self.recorder
        return (recorder is None or recorder.thread == threading.get_ident()) and not inside_pytorch()

    def _note_error(self, error: Exception) -> None:
        self.notes.append(f"an error after the end of the recording: {described(error)}")

    @property
    def phase(self) -> Phase:
        """The phase of the current step."""
        return self.schedule.phase(self.clock.step if self.clock else 0)

    @_contained
    def open(self) -> None:
        """Look for other profilers and old drivers; PyTorch is loaded from here on."""
        import torch

        if not self.launched:
            other_profilers.make_room()
        if other_profilers.is_running():
            self.give_up("another PyTorch profiler is running already and only one can; nothing is recorded here")
            return
        if cuda_graphs.needed(cuda_graphs.driver_version(), torch.version.cuda):
            cuda_graphs.apply()
            self.notes.append("old CUDA driver: CUPTI was loaded early, otherwise CUDA graphs lose kernels or crash")
        self._unwatch = other_profilers.watch(
            self.contain(self._someone_starts), self.contain(self._someone_exports), self.launched
        )

    @_contained
    def record_everything(self, options: Options) -> None:
        """Record from here on as one window, unless steps are found; what was recorded before is dropped."""
        self._start(options, None)

    @_contained
    def record_on(self, all_threads: bool = False) -> None:
        """Record everything in a further window, after a stop; what was recorded before is kept.

        Args:
            all_threads: what other threads do, too. One such window must not follow another: see `open_calls`.
        """
        if self.recorder is not None:
            self.recorder = self.recorder.successor(all_threads)
            self.recorder.start()

    @_contained
    def record_steps(self, steps_from: str, before: int, passed: int = 0) -> None:
        """Begin the schedule; its first step starts now, or the one after those that have passed.

        Args:
            steps_from: what marks a step, for the report.
            before: how many steps the program has made before the schedule. Its first one is no fair baseline.
            passed: how many steps of the schedule have passed.
        """
        self.steps_from, self.before = steps_from, before
        self._start(self.options, self.schedule, passed)
        self.clock = StepClock(self.schedule, cold_start=before + passed == 0)
        self.clock.step = passed

    def without_steps(self) -> None:
        """Nothing marked a step: what is recorded is one window of everything."""
        if self.clock is not None and not self.clock.step:
            self.clock, self.steps_from = None, WHOLE_RUN

    @property
    def _is_watching(self) -> bool:
        return self._contents is not None and not self._contents_are_over

    def may_step(self) -> bool:
        """Return whether a step can end here: not while an operator or a backward pass is open, see `open_calls`."""
        inside = inside_pytorch()
        self.inside += inside
        return not inside

    def step(self) -> None:
        """One step has ended and the next begins, where it may."""
        if os.getpid() == self.process:
            contained(self._step, self.fail)()  # steps count after a recording has ended, too

    def _step(self) -> None:
        if self.clock is not None:
            recorded = self.phase is not Phase.DONE
            if (recorded or self.inside) and not self.may_step():
                return
            self.clock.end()
            if not self._is_watching:  # the watch keeps what it has seen
                self.memory.note(self.clock.step)
            self._decide_on_stacks(self._counted_calls())
            if recorded:
                self._advance()
            else:
                self._watch_contents()
            self._count_calls()
            self.clock.begin()
            if self._is_watching:
                self.clock.leave_out()

    def count_last_step(self) -> None:
        """The step that was open when the program ended was whole: where the next would have begun, none did."""
        if self.clock is not None and os.getpid() == self.process:
            self.clock.step += 1

    def only_time(self) -> None:
        """Nothing more is recorded; steps may end elsewhere in the program's loop from now on."""
        if self.clock is not None:
            self.clock.leave_out()

    @_contained
    def stop(self) -> None:
        """End the window that is open; `close` does the rest. Of windows without end only whole ones count."""
        if self.recorder is not None:
            endless = self.clock is not None and not self.schedule.repeat
            self.recorder.stop(keep=not endless or not self.recorder.windows)

    @_contained
    def leave_out_empty(self) -> None:
        """Drop the last window if no operator ran in it."""
        if self.recorder is not None and self.recorder.windows and self.recorder.windows[-1].first_s is None:
            self.recorder.windows.pop().trace.unlink(missing_ok=True)

    @_contained
    def leave_out_first(self, count: int) -> None:
        """Drop the first windows if there are others."""
        if self.recorder is not None and len(self.recorder.windows) > count:
            for window in self.recorder.windows[:count]:
                window.trace.unlink(missing_ok=True)
            del self.recorder.windows[:count]

    def first_operator_s(self) -> float | None:
        """When the first operator of the last window began, in seconds after the window did; None without windows."""
        windows = self.recorder.windows if self.recorder is not None else []
        return windows[-1].first_s if windows else None

    def recorded_s(self) -> float:
        """How long the windows that are closed are together, in seconds."""
        windows = self.recorder.windows if self.recorder is not None else []
        return sum(window.spent.wall_us for window in windows) / 1e6

    @_contained
    def order_windows(self) -> None:
        """Put the window with most events first."""
        if self.recorder is not None:
            self.recorder.windows = _largest_first(self.recorder.windows)

    def recorded(self) -> tuple[int, list[tuple[int, int]]]:
        """How many steps of the schedule ended, and when each closed window began and ended, ns since 1970.

        So does the time in which contents were watched.
        """
        windows = self.recorder.windows if self.recorder is not None else []
        times = [window.samples.times_ns for window in windows]
        contents = self.contents
        watched = [contents.times_ns] if contents is not None else []
        return self.clock.step if self.clock is not None else 0, [(one[0], one[-1]) for one in times if one] + watched

    @functools.cached_property
    def contents(self) -> Contents | None:
        """What was watched after the windows; None where nothing was. From here on it is over."""
        if self._contents is None:
            return None
        watch = self._contents

        def result() -> Contents:
            self._watch_no_more()
            watch.end()
            if watch.trouble is not None:
                self.notes.append(f"contents of tensors were examined until an error: {described(watch.trouble)}")
            return watch.result()

        return contained(result, self._note_error)()

    def count_events(self) -> list[int]:
        """How many events were recorded in each window that is closed."""
        return [window.size for window in self.recorder.windows] if self.recorder is not None else []

    def give_up(self, note: str) -> None:
        """Record nothing more; windows that are whole are kept."""
        self.notes.append(note)
        self.stopped = self.gave_up = True

    def close(self, ended: str) -> Capture | None:
        """Stop, write the folder and return the capture; None in a forked child, which has nothing to write.

        Args:
            ended: how the program ended, for the report.
        """
        if os.getpid() != self.process:
            return None
        contained(self._counted_calls, self._note_error)()
        self.stop()
        self.stopped = True
        self._clean = False
        self._clean_up(at_end=True)
        if self._unwatch is not None:
            contained(self._unwatch, self._note_error)()
        windows, salvaged = self._windows()
        own = tuple(self._exports())
        self.notes.extend(
            f"the program recorded itself: torchwhy explain {shlex.quote(str(path))} reads that" for path in own
        )
        if self.made_room and not own:
            self.notes.append(
                'the program\'s own profiler wrote no trace: its export_chrome_trace("own.json") writes one, which is '
                "then explained here"
            )
        if self.recorder is not None and self.recorder.stacks_refused:
            self.notes.append(
                "no stacks were recorded: the program has set a profiling function (sys.setprofile), which PyTorch "
                "would remove"
            )
        if self.inside:
            self.notes.append(
                f"{counted(self.inside, 'step')} ended inside an operator, a backward pass or compiled code, where no "
                "recording can end; such steps count as part of the next one"
            )
        return finish(self._run(ended, windows, salvaged, own))

    def abandon(self, ended: str, why: str) -> Capture:
        """Remove what is written so far, and return a capture of nothing.

        Args:
            ended: how the program ended, for the report.
            why: becomes a note.
        """
        self.stopped = True
        self._clean = False
        self._clean_up(at_end=True)
        self.notes.append(why)
        return finish(self._run(ended, [], salvaged=False))

    def _windows(self) -> tuple[list[Window], bool]:
        """What was recorded, and whether it is only the beginning of the run."""
        if self.recorder is not None and self.recorder.windows:
            return self.recorder.windows, False
        if self.beginning is not None and not self.gave_up:
            try:
                return _largest_first(self.beginning.salvage()), True
            except Exception as error:
                if is_programs(error):
                    raise
                self.notes.append(f"the beginning of the run could not be written: {described(error)}")
        return [], False

    def _exports(self) -> Iterator[Path]:
        """Recordings that the program made itself: timelines, and folders of runs."""
        runs = {
            path.parent.with_name(path.parent.name.removesuffix(PARTIAL)) for path in self.exported if _is_ours(path)
        }
        for path in (*(path for path in self.exported if not _is_ours(path)), *sorted(runs)):
            if path.exists():
                yield path

    def _run(self, ended: str, windows: list[Window], salvaged: bool, own: tuple[Path, ...] = ()) -> Run:
        clock = self.clock
        schedule = replace(self.schedule, active=ACTIVE) if self.schedule.grows else self.schedule
        options = self.beginning.options if salvaged and self.beginning else self.options
        return Run(
            self.folder, self.command, self.spelling, ended, self.steps_from, self.before,
            clock.step if clock else None, schedule, tuple(windows), salvaged, self.cut, options,
            self.activities, self._overhead(windows),
            clock.unrecorded() if clock else (), tuple(self.memory.read), tuple(self.notes), self.gave_up,
            self.launched, own, self._power, self.run_times, self.contents,
        )  # fmt: skip

    def _overhead(self, windows: list[Window]) -> Overhead | None:
        if self.clock is None:
            return None
        busy = waited_share(window.spent for window in windows) > BUSY
        return self.clock.overhead(any(window.compiled.frames for window in windows), busy)

    def _count_calls(self) -> None:
        """Count the calls of the last unprofiled step, unless no unprofiled step can be compared with others."""
        clock, last = self.clock, self.schedule.wait - 1
        if self.options.stacks is None and clock is not None and clock.step == last > 0 and not self.stopped:
            self._calls = PythonCalls()
            clock.leave_out()

    def _counted_calls(self) -> int | None:
        counting, self._calls = self._calls, None
        return counting.end() if counting is not None else None

    @_contained
    def _decide_on_stacks(self, calls: int | None) -> None:
        if self.clock is not None and self.recorder is not None and worth_recording(calls, self.clock.unprofiled_us()):
            self.recorder.add_stacks()
            self.options = self.recorder.options
            self._calls_a_step = calls or 0

    @_contained
    def _watch_contents(self) -> None:
        """Watch the contents of tensors in the steps after the windows; see `capture/contents.py`."""
        self._after_windows += 1
        if self._contents_are_over or self._after_windows <= NEAR or inside_pytorch():
            return
        if self._contents is None:
            self._begin_contents(has_steps=True)
        else:
            self._contents.step()
            self._contents_are_over = self._contents.over and self._contents.end()

    def _begin_contents(self, has_steps: bool) -> None:
        from torchwhy.capture.contents import ContentsWatch, may_watch

        if self.recorder is not None and self.recorder.windows and may_watch():
            self._contents = ContentsWatch(has_steps=has_steps)
            self._contents.begin()
        else:
            self._contents_are_over = True

    @_contained
    def watch_contents(self) -> None:
        """Watch the contents of tensors from here on: nothing more is recorded, and there are no steps."""
        if self._contents_are_over or self.clock is not None:
            return
        self._begin_contents(has_steps=False)
        watch = self._contents
        if watch is not None:
            self._watch_no_more = whenever(lambda: watch.over, functools.partial(self._end_contents, watch), self.fail)

    @_contained
    def _end_contents(self, watch: ContentsWatch) -> None:
        if not inside_pytorch() and watch.end():  # PyTorch would bring the mode back
            self._contents_are_over = True
            self._watch_no_more()

    @_contained
    def _advance(self) -> None:
        if self.recorder is not None and self.clock is not None:
            ended = self.clock.step - 1
            longer = self.schedule.active < most_steps(self._calls_a_step) and not self.clock.is_settled()
            if self.schedule.grows and self.schedule.ends_window(ended) and longer:
                self.schedule = self.clock.schedule = self.recorder.schedule = self.schedule.grown()
            windows = len(self.recorder.windows)
            self.recorder.step()
            if self.recorder.windows:
                self.beginning = None
            if not self.schedule.repeat and len(self.recorder.windows) > windows:
                self._bound()

    def _bound(self) -> None:
        """End a schedule that has no end when there is as much as can be read in reasonable time."""
        events = self.count_events()
        if self.recorder is not None and self.clock is not None and sum(events) >= MOST:
            self.recorder.stop(keep=False)
            self.clock.schedule = self.schedule = replace(self.schedule, repeat=len(events))
            self.notes.append(
                f"recording ended after {counted(len(events), 'window')}: {sum(events)} events, as many as can be read "
                "in reasonable time"
            )

    def _start(self, options: Options, schedule: Schedule | None, passed: int = 0) -> None:
        if self._contents is None:
            self._watch_no_more()
        elif self._contents.end():  # steps were found after all
            self._watch_no_more()
            self._contents_are_over = not self.options.contents
        else:  # it ends as soon as it can
            self._contents_are_over = True
        self._contents = None
        if self.recorder is not None:
            self.recorder.stop(keep=False)
            if self.clock is None:
                self.beginning = self.recorder
        self.recorder = None
        self.activities = tuple(filter(self._can_record, ACTIVITIES))
        if options.power and "cuda" in self.activities and self._power is None:
            self._watch_power()
        if self.activities:
            self.recorder = Recorder(options, self.activities, schedule, self.folder.partial, passed, self.ready)
            self.recorder.start()
        elif schedule is not None or not self.launched:
            self.give_up(f"nothing was recorded: only {', '.join(options.activities)} was requested and is not there")

    def _watch_power(self) -> None:
        library = nvml()
        self._power = PowerSampler(library, uuids()) if library is not None else None
        if self._power is None or not self._power.devices:
            self.notes.append("--power recorded nothing: NVML, which comes with NVIDIA's driver, knows no GPU here")

    def _can_record(self, activity: str) -> bool:
        import torch

        if not self.options.wants(activity) or activity == "cpu":
            return self.options.wants(activity)
        if activity == "xpu":
            return torch.xpu.is_available()
        return (self.eager_cuda or torch.cuda.is_initialized()) and torch.cuda.is_available()

    def _someone_starts(self) -> None:
        """Make room for a profiler of the program's own: it is part of what the program does."""
        if self.stopped or self.recorder is None or self.recorder.busy:
            return
        if self._contents is not None:
            self._contents.end()
        if self.clock is None or self.phase is not Phase.DONE:
            self.recorder.stop(keep=self.clock is not None)
            self.made_room = True
            self.give_up(
                "the program started another PyTorch profiler, and only one can run at a time; torchwhy stopped"
            )

    def _someone_exports(self, path: Path) -> None:
        if self.recorder is None or not self.recorder.busy:
            self.exported.append(path)

    def _claim(self, path: Path) -> RunFolder:
        try:
            return claim(path, rank_of())
        except OSError as error:
            folder = claim_temporary(path.name)
            self.notes.append(f"cannot write {path}: {error.strerror or error}; everything went to {folder.final}")
            return folder


def _largest_first(windows: list[Window]) -> list[Window]:
    """Those with most events first: the first one is read first."""
    return sorted(windows, key=lambda window: window.size, reverse=True)


def _is_ours(path: Path) -> bool:
    """Whether a timeline was written into the folder of a run of torchwhy's, which has another name in the end."""
    return path.parent.name.endswith(PARTIAL)
