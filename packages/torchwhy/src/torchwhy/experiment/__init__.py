"""Small studies of where time goes, run and recorded the same way every time.

A workload is one file with a `Workload` in it (`matmul_add.py`), listed in `catalogue.py`. A `Case` says how to run it.
"""

from __future__ import annotations

from torchwhy.experiment.case import Case, Schedule
from torchwhy.experiment.cases import grid, run_cases
from torchwhy.experiment.catalogue import WORKLOADS, workload_named
from torchwhy.experiment.study import CaseResult, run_case
from torchwhy.experiment.sweep import Sweep, sweep
from torchwhy.experiment.workload import CannotRunError, Workload

__all__ = [
    "WORKLOADS",
    "CannotRunError",
    "Case",
    "CaseResult",
    "Schedule",
    "Sweep",
    "Workload",
    "grid",
    "run_case",
    "run_cases",
    "sweep",
    "workload_named",
]
