"""Runs a program that knows nothing of the profiler, under the profiler."""

from __future__ import annotations

from torchwhy.capture.launch.ending import Ending
from torchwhy.capture.launch.program import Program
from torchwhy.capture.launch.run import STEP_SOURCES, Settings, launch

__all__ = ["STEP_SOURCES", "Ending", "Program", "Settings", "launch"]
