"""Checking counts against budgets and a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchwhy.counters.counts import Counts
from torchwhy.errors import ArgumentError
from torchwhy.gate.baseline import Baseline
from torchwhy.gate.budget import Budget, Check, check, doubts
from torchwhy.schema import SCHEMA

__all__ = ["GateReport", "gate"]


@dataclass(frozen=True)
class GateReport:
    """All checks of one run; `warnings` say which limits were kept without saying anything, remarks decide nothing."""

    run: str
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit was kept."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The limits that were not kept."""
        return tuple(check for check in self.checks if not check.passed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, `schema`."""
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
        said = {"warnings": list(self.warnings), "remarks": list(self.remarks)}
        return {"schema": SCHEMA, "run": self.run, "passed": self.passed, "checks": checks, **said}


def gate(run: str, counts: Counts, budgets: Sequence[Budget] = (), baseline: Baseline | None = None) -> GateReport:
    """Check counts.

    Raises:
        ArgumentError: if there is nothing to check them against, or a budget names an operator that is never counted.
        EnvironmentMismatch: if the baseline is from another environment.

    >>> gate("run", Counts(), [Budget("syncs", "eq", 0)]).passed
    True
    """
    if not budgets and baseline is None:
        raise ArgumentError(
            "there is nothing to check against: put budgets into pyproject.toml ([tool.torchwhy.budgets], "
            "`syncs__eq = 0`), or keep a baseline with --update"
        )
    checks = tuple(check(budget, counts) for budget in budgets)
    kept = [budget for budget, done in zip(budgets, checks, strict=True) if done.passed]
    warnings = tuple(dict.fromkeys(doubt for budget in kept for doubt in doubts(budget, counts)))
    remarks: tuple[str, ...] = ()
    if baseline is not None:
        checks += baseline.checks(counts)
        remarks = tuple(f"fewer than in the baseline, --update keeps it: {text}" for text in baseline.improved(counts))
    return GateReport(run, checks, remarks, warnings)
