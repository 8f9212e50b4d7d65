"""One program, one capture: waits for PyTorch, looks for steps, records, reports."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from torchwhy.capture.advice import Spelling
from torchwhy.capture.compile_log import FILE, CompileLog
from torchwhy.capture.containment import contained, described
from torchwhy.capture.launch import hooks
from torchwhy.capture.launch.discovery import Source
from torchwhy.capture.launch.ending import Ending, on_termination, run_to_end, wait_for_threads
from torchwhy.capture.launch.importing import after_import
from torchwhy.capture.launch.out_of_memory import OutOfMemoryWatch
from torchwhy.capture.launch.program import Program, Rewrite
from torchwhy.capture.launch.step_function import NamedFunction
from torchwhy.capture.launch.thread_starts import before_threads_start
from torchwhy.capture.options import Options
from torchwhy.capture.result import Capture
from torchwhy.capture.run_watch import RunWatch
from torchwhy.capture.schedule import Phase, Schedule
from torchwhy.capture.session import Session
from torchwhy.capture.whole_run import Limits, WholeRun
from torchwhy.errors import ArgumentError

__all__ = ["STEP_SOURCES", "Settings", "launch"]

STEP_SOURCES = ("auto", *(source.value for source in Source), "none")


@dataclass(frozen=True)
class Settings:
    """How to record a program.

    Attributes:
        path: the run's folder.
        schedule: which steps.
        options: what.
        step_on: one of `STEP_SOURCES`, or a function as MODULE:NAME.
        limits: how much of a run without steps is recorded.
        on_oom: whether a snapshot of the GPU's allocator is written before an out-of-memory error is raised.
        compile_log: whether the compiler's own log is written into the folder.
    """

    path: Path
    schedule: Schedule
    options: Options
    step_on: str
    limits: Limits
    on_oom: bool = False
    compile_log: bool = False

    def __post_init__(self) -> None:
        """Check what has no class.

        Raises:
            ArgumentError: step_on is no source.
        """
        if self.step_on not in STEP_SOURCES:
            NamedFunction.parse(self.step_on)


def launch(
    program: Program,
    settings: Callable[[], Settings],
    report: Callable[[Capture], None],
    complain: Callable[[str], None],
) -> Ending:
    """Run a program to its end and record it on the way.

    Args:
        program: is run in this process, as `__main__`.
        settings: returns how it is recorded.
        report: called once, with the capture, when the program has ended or is being terminated.
        complain: is given a sentence if an error prevents recording or the report. The program runs in any case.

    Returns:
        How the program ended, for the caller to end likewise.

    Raises:
        ArgumentError: there is no such script, or a setting is invalid.
    """
    process = os.getpid()
    launched: _Launched | None = None
    try:
        program.check()
        launched = _Launched(program, settings(), report, complain)
        on_termination(launched.terminate)
    except ArgumentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the program runs
        complain(f"torchwhy cannot record the program: {described(error)}")
    if launched is None:
        return run_to_end(program.run)
    ending = run_to_end(launched.run)
    if os.getpid() != process:
        ending.follow_in_child()
    return launched.finish(ending)


class _Launched:
    """The wiring between a program, its steps and a session."""

    def __init__(
        self,
        program: Program,
        settings: Settings,
        report: Callable[[Capture], None],
        complain: Callable[[str], None],
    ) -> None:
        self._program, self._settings, self._report, self._complain = program, settings, report, complain
        self._session = Session(
            settings.path, settings.schedule, settings.options, program.command, Spelling("--{} {}", " "), launched=True
        )
        self._function = None if settings.step_on in STEP_SOURCES else NamedFunction.parse(settings.step_on)
        self._called = self._finished = self._found = self._torch = False
        self._interrupted = False
        found = "" if settings.step_on == "none" else "no steps were found, so "
        remedy = "--step-on MODULE:NAME makes each call of a function a step"
        self._whole = WholeRun(self._session, settings.limits, found, "--seconds records more", remedy)
        self._watch: hooks.StepWatch | None = None  # while it looks for more than time
        self._undo: list[Callable[[], None]] = []
        self._run_watch: RunWatch | None = None  # from the program's begin
        final = self._session.folder.final
        self._memory = OutOfMemoryWatch(final.with_name(f"{final.name}.oom.pickle")) if settings.on_oom else None
        self._compiler = CompileLog(self._session.folder.partial / FILE) if settings.compile_log else None

    def run(self) -> None:
        self._session.contain(self._watch_program)()
        try:
            self._run()
            if self._whole.has_threads:
                wait_for_threads()  # they may work on when the script has ended
        except (RuntimeError, MemoryError) as error:
            if self._memory is not None:
                self._session.contain(self._memory.ended_by)(error)
            raise
        finally:
            try:
                self._session.stop()  # before a traceback is shown, which is no part of the last step
            except KeyboardInterrupt:
                self._interrupted = True

    def _watch_program(self) -> None:
        after_import("torch", self._session.contain(self._torch_is_loaded))
        self._run_watch = RunWatch()
        if self._function is not None and not self._is_in_script:
            after_import(self._function.module, self._session.contain(self._module_is_loaded))

    @property
    def _is_in_script(self) -> bool:
        """Whether the function that marks steps is in the script itself."""
        return self._function is not None and self._function.module == "__main__" and self._program.is_script

    def _run(self) -> None:
        rewrite = self._session.contain(self._rewrite)() if self._is_in_script else None
        self._program.run(rewrite)

    def _rewrite(self) -> Rewrite | None:
        assert self._function is not None
        self._found = True
        return self._session.contain(self._function.rewrite(self._session.contain(self._step)))

    def finish(self, ending: Ending) -> Ending:
        """Write and report; a Ctrl-C meanwhile ends that, and nothing half written remains."""
        self._finished = True
        try:
            if self._interrupted:
                raise KeyboardInterrupt  # noqa: TRY301  (it came a moment ago)
            capture = self._closed(ending)
        except KeyboardInterrupt:
            self._close_interrupted(ending)
            return Ending("SIGINT", 128 + signal.SIGINT, signal.SIGINT)
        if capture is not None:
            try:
                self._reported(capture)
            except KeyboardInterrupt:
                return Ending("SIGINT", 128 + signal.SIGINT, signal.SIGINT)
        return ending

    def _close_interrupted(self, ending: Ending) -> None:
        why = "interrupted while it was written; nothing is kept"
        capture = contained(self._session.abandon, self._lose)(ending.text, why)
        if capture is not None:
            self._reported(capture)

    def _reported(self, capture: Capture) -> None:
        """Report, or say why not."""
        where = f"; the recording is in {capture.folder}" if capture.folder is not None else ""
        contained(self._report, lambda error: self._complain(f"torchwhy has no report: {described(error)}{where}"))(
            capture
        )

    def _lose(self, error: Exception) -> None:
        """Say why there is no capture."""
        self._session.folder.discard()
        self._complain(f"torchwhy recorded nothing: {described(error)}")

    def terminate(self, ending: Ending) -> None:
        """The same within a signal that kills, which may come while `finish` is at work."""
        if self._finished:
            self._session.folder.discard()
        else:
            self.finish(ending)

    def _closed(self, ending: Ending) -> Capture | None:
        """End everything, one after the other, whatever goes wrong with the others; None if nothing can be said."""
        for end in (self._whole.end, self._end_watches, *self._undo, self._explain, self._whole.tell, self._end_log):
            contained(end, self._session.fail)()
        return contained(self._session.close, self._lose)(ending.text)

    def _end_watches(self) -> None:
        if self._watch is not None and self._watch.step_is_over:
            self._session.count_last_step()
        if self._run_watch is not None:
            self._session.run_times = self._run_watch.end(*self._session.recorded())

    def _end_log(self) -> None:
        if self._compiler is not None:
            self._session.notes.extend(self._compiler.close())

    def _explain(self) -> None:
        """Note why nothing was recorded, and if memory ran out."""
        if not self._torch:
            self._session.give_up("nothing was recorded: the program did not import PyTorch")
        elif self._function is not None and not self._called:
            why = "was never called" if self._found else "was not found"
            self._session.give_up(f"nothing was recorded: the function {self._function} {why}")
        if self._memory is not None:
            self._session.notes.extend(self._memory.notes)

    def _torch_is_loaded(self, torch: ModuleType) -> None:
        self._torch = True
        if self._memory is not None:
            import torch as loaded

            loaded.cuda._lazy_call(self._session.contain(self._memory.attach))
        if self._compiler is not None:
            self._compiler.attach()
            after_import("torch._inductor.config", self._session.contain(self._compiler.note_provenance))
        if threading.current_thread() is not threading.main_thread():
            self._session.give_up("nothing was recorded: PyTorch was imported outside the main thread")
            return
        self._session.open()
        if self._function is None:
            self._find_steps()

    def _find_steps(self) -> None:
        import torch

        step_on = self._settings.step_on
        wanted = None if step_on in {"auto", "none"} else Source(step_on)
        if step_on != "none":
            self._watch = hooks.StepWatch(
                wanted, self._begin, self._step_found, self._may_switch, self._session.contain
            )
            self._undo.append(self._watch.remove)
        if wanted is None:
            self._record_everything()
            self._undo.append(before_threads_start(self._whole.record_threads, self._session.contain))
            # Kernels are recorded from when the GPU is first used; looking earlier would fix which GPUs are visible.
            torch.cuda._lazy_call(self._session.contain(self._cuda_is_used))

    def _record_everything(self) -> None:
        if self._session.clock is None and threading.current_thread() is threading.main_thread():
            options = self._settings.options
            self._whole.record(options if self._settings.step_on == "none" else options.light())

    def _cuda_is_used(self) -> None:
        self._session.eager_cuda = True
        self._record_everything()

    def _begin(self, label: str, before: int) -> None:
        self._whole.end()
        self._record_steps(label, before)

    def _step_found(self) -> None:
        self._session.step()
        if self._session.phase is Phase.DONE and self._watch is not None:
            watch, self._watch = self._watch, None
            self._session.only_time()
            watch.only_time(self._session.step)

    def _may_switch(self) -> bool:
        return self._session.phase is Phase.WAIT

    def _module_is_loaded(self, module: ModuleType) -> None:
        assert self._function is not None
        self._found = self._function.replace_in(module, self._step)

    def _step(self) -> None:
        if self._called:
            self._session.step()
        else:
            self._called = True
            self._record_steps(f"calls of {self._function}", before=0)

    def _record_steps(self, steps_from: str, before: int) -> None:
        if self._run_watch is not None:
            takes_rows = self._watch is not None and self._watch.takes_rows
            self._run_watch.steps_found(before, hooks.has_optimizer(), takes_rows)
        self._session.record_steps(steps_from, before)
