"""Capture: run any PyTorch program under `torch.profiler` and write a folder with its trace and tables.

`profile` is the context manager; `launch` runs programs that know nothing of it. What the trace says is not known here.
"""

from __future__ import annotations

from torchwhy.capture.context import profile
from torchwhy.capture.options import Options
from torchwhy.capture.result import Capture, ProfileWarning
from torchwhy.capture.schedule import Schedule

__all__ = ["Capture", "Options", "ProfileWarning", "Schedule", "profile"]
