"""`with profile(...) as p:` around a loop, `p.step()` at the end of each turn."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from torchwhy.capture.advice import Spelling
from torchwhy.capture.containment import contained, described
from torchwhy.capture.options import PYTORCHS_NAMES, Options, activities_of
from torchwhy.capture.result import Capture, ProfileWarning
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.session import Session
from torchwhy.capture.whole_run import SECONDS, Limits, WholeRun
from torchwhy.errors import ArgumentError, ArgumentTypeError

__all__ = ["profile"]


class profile:  # noqa: N801  (spelled as torch.profiler.profile is)
    """`torchwhy.profile` without the reading at the end.

    Arguments, errors and attributes are described there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "traces/run",
        *,
        wait: int = 3,
        warmup: int = 1,
        active: int | None = None,
        repeat: int = 1,
        shapes: bool = True,
        memory: bool = False,
        stacks: bool | None = None,
        flops: bool = False,
        modules: bool = False,
        cuda: bool | None = None,
        sync_events: bool = True,
        power: bool = False,
        tensorboard: bool = False,
        activities: Iterable[Any] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        seconds: float = SECONDS,
        schedule: Callable[[int], Any] | None = None,
        **pytorchs: bool | None,
    ) -> None:
        """Check and keep the settings; nothing is claimed or recorded yet."""
        given: dict[str, Any] = {
            "shapes": shapes,
            "memory": memory,
            "stacks": stacks,
            "flops": flops,
            "modules": modules,
        }
        given |= {_ours(name): value for name, value in pytorchs.items()}
        steps = Schedule.of(wait, warmup, active, repeat)
        if schedule is not None:
            if not callable(schedule):
                raise ArgumentTypeError(f"schedule must be callable, as torch.profiler.schedule(...), got {schedule!r}")
            if steps != Schedule.of(3, 1, None, 1):
                raise ArgumentError("schedule determines the recorded steps: omit wait, warmup, active and repeat")
            steps = Schedule.of_actions(schedule)
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentTypeError(f"path must name a folder, got {path!r}")
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise ArgumentTypeError(f"on_trace_ready must be callable, got {on_trace_ready!r}")
        recorded = activities_of(activities) if activities is not None else ()
        self.result: Capture | None = None
        self._path = Path(path)
        self._schedule = steps
        self._options = Options(
            **given, cuda=cuda, sync_events=sync_events, tensorboard=tensorboard, activities=recorded, power=power
        )
        self._limits = Limits(seconds)
        self._ready = on_trace_ready
        self._session: Session | None = None
        self._whole: WholeRun | None = None  # until the first step ends

    def __enter__(self) -> profile:
        """Claim the folder and begin the schedule with the first step."""
        contained(self._begin, _warn)()
        return self

    def _begin(self) -> None:
        command = [sys.executable, *sys.argv]
        self._session = Session(
            self._path, self._schedule, self._options, command, Spelling("{}={}", ", "), launched=False,
            ready=self._ready,
        )  # fmt: skip
        self._session.open()
        # A recording that has no end yet is limited by calls in the main thread.
        if self._schedule.first_recorded and threading.current_thread() is threading.main_thread():
            remedy = "p.step() at the end of each turn of the program's loop makes steps"
            self._whole = WholeRun(
                self._session, self._limits, "p.step() was not called, so ", "seconds=N records more", remedy
            )
            self._session.contain(self._whole.record)(self._options)
        else:
            self._session.record_steps("p.step()", before=0)

    def __repr__(self) -> str:
        """Return where it records to and what came of it."""
        state = "recording" if self._session else "not started" if self.result is None else repr(self.result)
        return f"<profile to {self._path}: {state}>"

    def step(self) -> None:
        """Say that one step has ended and the next begins; outside the block this does nothing."""
        if self._session is not None and self._whole is None:
            self._session.step()
        elif self._session is not None:
            self._session.contain(self._end_first_step)()

    def _end_first_step(self) -> None:
        if self._session is not None and self._whole is not None and self._session.may_step():
            self._whole.end()
            self._whole = None
            self._session.record_steps("p.step()", before=0, passed=1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write the folder, whatever ended the block."""
        session, self._session = self._session, None
        if session is None:
            return
        whole, self._whole = self._whole, None
        for end in (whole.end, whole.tell) if whole is not None else ():
            contained(end, session.fail)()
        session.without_steps()
        capture = contained(session.close, _warn)("finished" if kind is None else kind.__name__)
        if capture is not None:
            self.result = contained(self._finish, _warn)(capture) or capture
            for note in capture.problems:
                warnings.warn(note, ProfileWarning, stacklevel=2)

    def _finish(self, capture: Capture) -> Capture:
        """What is left to do when the folder is whole: nothing here."""
        return capture


def _warn(error: Exception) -> None:
    warnings.warn(f"the profiler stopped: {described(error)}", ProfileWarning, stacklevel=4)


def _ours(name: str) -> str:
    if name not in PYTORCHS_NAMES:
        raise ArgumentTypeError(
            f"profile has no argument {name!r}; of torch.profiler's it takes schedule, activities, "
            f"on_trace_ready, {', '.join(PYTORCHS_NAMES)}"
        )
    return PYTORCHS_NAMES[name]
