"""The result of one capture, as plain data and as a screen of text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchwhy.capture.operators import OperatorRow, table
from torchwhy.capture.options import Options
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.step_clock import Overhead
from torchwhy.wording import counted, duration

__all__ = ["STILL_RUNNING", "WHOLE_RUN", "Capture", "ProfileWarning"]

STILL_RUNNING: Final = "still running"
"""How the program has ended where it recorded itself for a while at the request of `torchwhy profile --pid`."""

WHOLE_RUN = "whole run"
ROWS = 10  # of the operator table on the screen
COMMAND_WIDTH = 100


class ProfileWarning(UserWarning):
    """A capture could not be made as asked; the program runs on and the message says what to change."""


@dataclass(frozen=True)
class Capture:
    """One run under the profiler.

    Attributes:
        folder: where everything was written; None when nothing was recorded.
        command: the command line.
        ended: how the program ended: "finished", or what stopped it.
        steps_from: what marks a step, or "whole run".
        steps_seen: steps that ended, recorded or not.
        steps_recorded: steps in the windows.
        schedule: which of them were to be recorded; None for a whole run.
        windows: recorded windows.
        cut: whether a recording of everything is only a part of the run.
        options: what was recorded.
        cuda: whether the GPU was recorded.
        overhead: unprofiled and profiled time per step.
        operators: rows by name, the most expensive first; () until the trace has been read.
        problems: what did not go as asked, and what to do about it.
        hints: what to keep in mind when reading the numbers.
        explanation: what the trace says, as text: where the time went and what is wrong; "" until it has been read.
        own: what the program itself recorded meanwhile: timelines, and folders of runs.
    """

    folder: Path | None
    command: tuple[str, ...]
    ended: str
    steps_from: str
    steps_seen: int
    steps_recorded: int
    schedule: Schedule | None
    windows: int
    cut: bool
    options: Options
    cuda: bool
    overhead: Overhead | None
    operators: tuple[OperatorRow, ...]
    problems: tuple[str, ...]
    hints: tuple[str, ...]
    explanation: str = ""
    own: tuple[Path, ...] = ()

    def __str__(self) -> str:
        """Return what was recorded, what looking cost, notes, the most expensive operators, and what the trace says."""
        notes = [f"note: {note}" for note in (*self.problems, *self.hints)]
        parts = ["\n".join(_head(self)), "\n".join(_cost(self)), "\n".join(notes)]
        parts += [table(self.operators, ROWS), self.explanation]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        """Return it in a line, for notebooks and the REPL; `print` shows all of it."""
        return f"<capture: {_recorded(self)}; {self.folder or 'no folder'}>"


def _head(capture: Capture) -> Iterator[str]:
    command = shlex.join(capture.command)
    yield f"program    {command if len(command) <= COMMAND_WIDTH else command[:COMMAND_WIDTH] + '...'}"
    if capture.ended != "finished":
        yield f"ended      {capture.ended}"
    yield f"recorded   {_recorded(capture)}"
    if capture.folder is not None:
        yield f"folder     {capture.folder}  (trace.json.gz opens in ui.perfetto.dev)"


def _recorded(capture: Capture) -> str:
    if not capture.windows:
        return "nothing"
    asked = capture.options.activities
    devices = "CPU" if not capture.cuda else "GPU" if asked and "cpu" not in asked else "CPU and GPU"
    if capture.schedule is None:
        parts = "as one window" if capture.windows <= 1 else f"in {capture.windows} windows"
        cut = "the beginning of the run" if capture.windows <= 1 else "parts of the run"
        what = "a part of the run" if capture.ended == STILL_RUNNING else cut if capture.cut else "the whole run"
        return f"{what} {parts} without steps, {devices}"
    if not capture.steps_recorded:
        return f"the beginning of the run, {devices}"
    return (
        f"{counted(capture.steps_recorded, 'step')} of {capture.steps_seen}, {devices}; "
        f"steps from {capture.steps_from} ({capture.schedule})"
    )


def _cost(capture: Capture) -> Iterator[str]:
    if not capture.steps_recorded or capture.overhead is None:
        return
    yield f"profiler   {_overhead(capture.overhead)}"


def _overhead(overhead: Overhead) -> str:
    if overhead.profiled_us is None:
        return "its cost is not known: no recorded step ended"
    profiled = f"{duration(overhead.profiled_us)} recorded (median of {overhead.profiled_n})"
    if overhead.baseline_us is None:
        return f"{profiled}; its cost is not known: no step but the first ran without it"
    baseline = f"{duration(overhead.baseline_us)} without (median of {overhead.baseline_n})"
    if overhead.ratio is None:
        return f"{profiled}, {baseline}; its cost is not known: {overhead.unlike}"
    cost = f"{overhead.ratio - 1:+.0%} per step" if overhead.ratio > 1 else "no cost seen"
    return f"{cost}: {profiled}, {baseline}"
