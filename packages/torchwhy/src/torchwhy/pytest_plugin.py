"""The pytest fixture `profile_gate`: budgets for a block of code.

    def test_step(profile_gate):
        with profile_gate(kernel_launches__max=12, syncs__eq=0, graph_breaks__eq=0):
            step()

pytest loads `_torchwhy_pytest`, which imports this module when the fixture is used.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torchwhy.counters import Counting
    from torchwhy.gate import Budget, GateReport

__all__ = ["GateWarning", "ProfileGate"]


class GateWarning(UserWarning):
    """A limit was kept, but could not have been exceeded here."""


class ProfileGate:
    """Call it with budgets to get a context manager that fails the test if the block exceeds them."""

    def __init__(self, folder: Path) -> None:
        """Look for `pyproject.toml` in `folder` and above."""
        self._folder = folder

    @contextmanager
    def __call__(
        self, budgets: Mapping[str, int] | str | None = None, /, *, trace: bool | None = None, **more: int
    ) -> Iterator[Counting]:
        """Count the block and check it; without arguments, the budgets of `pyproject.toml` apply.

        A limit that could not be exceeded here (`syncs` without a GPU, graph breaks without compilation) gives a
        `GateWarning`.

        Args:
            budgets: `{"aten::mm__max": 4}`, for names that are not Python identifiers, or the name of a table in
                `pyproject.toml`: "train" for `[tool.torchwhy.budgets.train]`, in addition to the common budgets.
            trace: as in `torchwhy.count`; None also traces where a budget needs it.
            more: budgets such as `syncs__eq=0`; they override the table.

        Yields:
            the count, whose numbers are complete after the block.

        Raises:
            ArgumentError, ArgumentTypeError: a budget is invalid; raised before the block runs.
        """
        from torchwhy.counters import count

        allowed = self._budgets(budgets, more)
        with count(trace=_trace_for(allowed) if trace is None else trace) as counting:
            yield counting
        report = self._check(counting, allowed)
        for warning in report.warnings:
            warnings.warn(f"profile_gate: {warning}", GateWarning, stacklevel=3)
        if not report.passed:
            failures = "\n".join(map(str, report.failed))
            pytest.fail(
                f"profile_gate: {len(report.failed)} of {len(report.checks)} limits not kept\n{failures}", False
            )

    def time_ratio(
        self, step: Callable[[], Any], reference: Callable[[], Any], *, max_ratio: float, max_time_s: float = 5.0
    ) -> float:
        """Fail if `step` takes significantly more than `max_ratio` times as long as `reference`, timed alternately.

        Times differ between machines, but a ratio within one run does not, and it has a confidence interval.

        Returns:
            the median ratio.
        """
        from torchwhy.errors import ArgumentError
        from torchwhy.timing import compare

        if not max_ratio > 0:
            raise ArgumentError(f"max_ratio must be greater than 0, got {max_ratio}")
        ratio = compare({"reference": reference, "step": step}, max_time_s=max_time_s).ratios[0]
        if ratio.confidence >= ratio.required and ratio.low > max_ratio:
            pytest.fail(f"profile_gate: time ratio is {ratio}, allowed: at most {max_ratio}", False)
        return ratio.ratio

    def _budgets(self, given: Mapping[str, int] | str | None, more: Mapping[str, int]) -> tuple[Budget, ...]:
        from torchwhy.errors import ArgumentError, ArgumentTypeError
        from torchwhy.gate import budgets_from, parse_budgets
        from torchwhy.pyproject import find_pyproject

        path = find_pyproject(self._folder)
        if isinstance(given, str):
            if path is None:
                raise ArgumentError(f"profile_gate({given!r}) needs a pyproject.toml in {self._folder} or above")
            own = parse_budgets(more)
            replaced = {(budget.metric, budget.comparison) for budget in own}
            kept = [b for b in budgets_from(path, given) if (b.metric, b.comparison) not in replaced]
            return (*kept, *own)
        if not isinstance(given, Mapping | None):
            raise ArgumentTypeError(f"budgets must be a dict or a table's name, got {type(given).__name__}")
        wanted = {**(given or {}), **more}
        allowed = parse_budgets(wanted) if wanted else budgets_from(path) if path else ()
        if not allowed:
            raise ArgumentError("profile_gate needs a budget, such as syncs__eq=0; pyproject.toml has no budgets")
        return allowed

    @staticmethod
    def _check(counting: Counting, allowed: tuple[Budget, ...]) -> GateReport:
        from torchwhy.gate import gate

        return gate("block", counting.counts, allowed)


def _trace_for(budgets: tuple[Budget, ...]) -> bool | None:
    """Return True where a budget needs a trace: its own calls, or graph breaks of code compiled before."""
    names = {budget.metric for budget in budgets}
    if "dispatches" in names or ("graph_breaks" in names and "torch._dynamo" in sys.modules and _breaks_known()):
        return True
    return None


def _breaks_known() -> bool:
    from torchwhy.counters.compiler import known_graph_breaks

    return known_graph_breaks() > 0
