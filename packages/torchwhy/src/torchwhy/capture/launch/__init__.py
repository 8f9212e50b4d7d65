"""Runs a program that knows nothing of the profiler, under the profiler."""

from __future__ import annotations

from torchfx.profiler.capture.launch.ending import Ending
from torchfx.profiler.capture.launch.program import Program
from torchfx.profiler.capture.launch.run import STEP_SOURCES, Settings, launch

__all__ = ["STEP_SOURCES", "Ending", "Program", "Settings", "launch"]
