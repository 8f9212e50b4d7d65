"""Checking counts against budgets and a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchfx.errors import ArgumentError
from torchfx.profiler.counters.counts import Counts
from torchfx.profiler.gate.baseline import Baseline
from torchfx.profiler.gate.budget import Budget, Check, check

__all__ = ["Report", "gate"]


@dataclass(frozen=True)
class Report:
    """All checks of one run, and remarks that decide nothing."""

    run: str
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit was kept."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The limits that were not kept."""
        return tuple(check for check in self.checks if not check.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, `schema` 1."""
        checks = [
            {
                "metric": check.metric,
                "allowed": check.rule,
                "actual": check.actual,
                "passed": check.passed,
                "evidence": list(check.evidence),
            }
            for check in self.checks
        ]
        return {"schema": 1, "run": self.run, "passed": self.passed, "checks": checks, "remarks": list(self.remarks)}


def gate(run: str, counts: Counts, budgets: Sequence[Budget] = (), baseline: Baseline | None = None) -> Report:
    """Check counts.

    Raises:
        ArgumentError: if there is nothing to check them against.
        EnvironmentMismatch: if the baseline is from another environment.

    >>> gate("run", Counts(), [Budget("syncs", "eq", 0)]).passed
    True
    """
    if not budgets and baseline is None:
        raise ArgumentError(
            "there is nothing to check against: put budgets into pyproject.toml ([tool.torchfx.budgets], "
            "`syncs__eq = 0`), or keep a baseline with --update"
        )
    checks = tuple(check(budget, counts) for budget in budgets)
    remarks: tuple[str, ...] = ()
    if baseline is not None:
        checks += baseline.checks(counts)
        remarks = tuple(f"fewer than in the baseline, --update keeps it: {text}" for text in baseline.improved(counts))
    return Report(run, checks, remarks)
