"""Several cases: which, each apart from the others, and whether they contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from torchwhy.errors import ArgumentError
from torchwhy.experiment.case import Case
from torchwhy.experiment.checks import require_runnable
from torchwhy.experiment.study import CaseResult, run_case
from torchwhy.experiment.worker import run_apart
from torchwhy.experiment.workload import Workload
from torchwhy.wording import percent

__all__ = ["disagreements", "grid", "run_cases", "sizes_from"]


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


def disagreements(results: Sequence[CaseResult]) -> list[str]:
    """Return a sentence for each pair of a cold and a warm case that are alike otherwise and get another verdict.

    On the CPU both time the same call, warm, so only noise tells them apart.
    """
    said = []
    warm = {replace(result.case, warm=False): result for result in results if result.case.warm}
    for cold in results:
        other = warm.get(cold.case)
        if other is None or other.regime == cold.regime:
            continue
        verdicts = f"{cold.regime} cold ({percent(cold.work_share)} work), {other.regime} warm"
        head = f"size {cold.case.size}, {cold.case.variant}: {verdicts} ({percent(other.work_share)})"
        on_cpu = cold.fastest_s is not None
        reason = "the same call, so believe neither and repeat it on an idle machine"
        said.append(f"{head}; {reason}" if on_cpu else f"{head}; the cold one prepares things, believe the warm one")
    return said


def sizes_from(text: str) -> list[int]:
    """Return the sizes that a sweep's text asks for: a range in doublings, or a list.

    >>> sizes_from("size=64..512"), sizes_from("size=64,100,1000"), sizes_from("size=100..300")
    ([64, 128, 256, 512], [64, 100, 1000], [100, 200, 300])
    """
    if match := re.fullmatch(r"size=(\d+)\.\.(\d+)", text):
        low, high = int(match[1]), int(match[2])
        if 1 <= low < high:
            doublings = range((high // low).bit_length())
            return sorted({*(low << i for i in doublings), high})
    elif re.fullmatch(r"size=\d+(,\d+)+", text):
        sizes = sorted({int(part) for part in text.removeprefix("size=").split(",")})
        if sizes[0] >= 1 and len(sizes) > 1:
            return sizes
    raise ArgumentError(f"sweep must be size=LOW..HIGH with 1 <= LOW < HIGH, or size=A,B,..., got {text!r}")
