"""What one capture found, as plain data; `run.json` holds it and the text is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchfx.profiler.capture.operators import OperatorRow
from torchfx.profiler.capture.options import Options
from torchfx.profiler.capture.schedule import Schedule
from torchfx.profiler.capture.step_clock import Overhead

__all__ = ["TROUBLE", "WHOLE_RUN", "Capture", "ProfileWarning"]

WHOLE_RUN = "whole run"
# What PyTorch's profiler, its exporter and the file system raise. The program being profiled must not meet them.
TROUBLE = (RuntimeError, OSError, AssertionError, ValueError)


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
        steps_recorded: frames of steps in the windows; 0 where PyTorch cannot read back what it recorded.
        schedule: which of them were to be recorded; None for a whole run.
        windows: recorded windows.
        cut: whether a recording of everything ended before the program did.
        options: what was recorded.
        cuda: whether the GPU was recorded.
        overhead: unprofiled and profiled time per step.
        operators: rows by name, the most expensive first.
        problems: what did not go as asked, and what to do about it.
        hints: what to keep in mind when reading the numbers.
        explanation: what the trace says, as text: where the time went and what is wrong; "" until it has been read.
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

    def __str__(self) -> str:
        """Return the capture as a screen of text."""
        from torchfx.profiler.capture.screen import render

        return render(self)
