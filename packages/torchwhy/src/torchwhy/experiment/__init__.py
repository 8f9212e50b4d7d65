"""Small workloads, run and recorded the same way every time, and a machine's measured peaks."""

from __future__ import annotations

from torchwhy.experiment.study import CaseResult, Point, grid, run_case, run_cases, sweep
from torchwhy.experiment.workloads import WORKLOADS, CannotRunError, Case, Workload

__all__ = [
    "WORKLOADS",
    "CannotRunError",
    "Case",
    "CaseResult",
    "Point",
    "Workload",
    "grid",
    "run_case",
    "run_cases",
    "sweep",
]
