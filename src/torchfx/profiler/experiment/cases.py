"""Several cases: which, and each apart from the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from torchfx.profiler.experiment.case import Case
from torchfx.profiler.experiment.checks import require_runnable
from torchfx.profiler.experiment.study import CaseResult, run_case
from torchfx.profiler.experiment.worker import run_apart
from torchfx.profiler.experiment.workload import Workload

__all__ = ["grid", "run_cases"]


def grid(case: Case, sizes: Sequence[int]) -> list[Case]:
    """Return, for each size, the case cold and warm, eager and compiled.

    >>> [(c.size, c.warm, c.variant) for c in grid(Case(1), [64])]
    [(64, False, 'eager'), (64, False, 'compiled'), (64, True, 'eager'), (64, True, 'compiled')]
    """
    modes = (None, case.mode or "default")
    return [replace(case, size=n, warm=warm, mode=mode) for n, warm, mode in product(sizes, (False, True), modes)]


def run_cases(workload: Workload, cases: Sequence[Case], folder: Path, force: bool = False) -> Iterator[CaseResult]:
    """Run cases one after the other; several each in a process of its own, so that cold means cold.

    Raises:
        ArgumentError: one of the cases cannot run here; then none has run.
        CannotRunError: a case failed.
    """
    for case in cases:
        require_runnable(workload, case)
    for case in cases:
        yield (run_case if len(cases) == 1 else run_apart)(workload, case, folder, force)
