"""Budgets: a limit for a metric, and the result of its check."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torchwhy.counters.counts import Counts
from torchwhy.counters.metrics import COMPILER_METRICS, DEVICE_METRICS, check_name
from torchwhy.counters.table import few
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.spelling import did_you_mean

__all__ = ["Budget", "Check", "check", "doubts", "parse_budget", "parse_budgets", "why_unknown"]

COMPARISONS = {"eq": operator.eq, "max": operator.le, "min": operator.ge}
_WORDS = {"eq": "exactly", "max": "at most", "min": "at least"}


@dataclass(frozen=True)
class Budget:
    """A limit: `metric` must be exactly (eq), at most (max) or at least (min) `limit`."""

    metric: str
    comparison: str
    limit: int

    def __str__(self) -> str:
        """Return the budget in words."""
        return f"{self.metric} {_WORDS[self.comparison]} {self.limit}"


@dataclass(frozen=True)
class Check:
    """The result of a check: an `actual` of None was not counted, and fails.

    Args:
        metric: name of the metric. rule: the limit in words.
        evidence: the parts of the number, one line each, if the limit was exceeded.
        baseline: the file of the limit, if it does not come from the budgets.
    """

    metric: str
    rule: str
    actual: int | None
    passed: bool
    evidence: tuple[str, ...] = ()
    baseline: str = ""

    @property
    def headline(self) -> str:
        """The actual number and the limit."""
        found = "was not counted" if self.actual is None else f"is {self.actual}"
        return f"{self.metric} {found}, allowed: {self.rule}"

    def __str__(self) -> str:
        """Return the headline; evidence follows in indented lines."""
        return "\n    ".join([self.headline, *self.evidence])


def parse_budgets(budgets: Mapping[str, object]) -> tuple[Budget, ...]:
    """Return the budgets of a table `{"syncs__eq": 0}`.

    Raises:
        ArgumentError: the metric or comparison is unknown, or the limit is negative.
        ArgumentTypeError: the limit is not an integer.
    """
    return tuple(parse_budget(name, limit) for name, limit in budgets.items())


def parse_budget(name: str, limit: object) -> Budget:
    """Return the budget for `metric__comparison` and a limit.

    >>> print(parse_budget("kernel_launches__max", 12))
    kernel_launches at most 12
    >>> parse_budget("syncs__equal", 0)
    Traceback (most recent call last):
    torchwhy.errors.ArgumentError: unknown comparison 'equal' in 'syncs__equal', did you mean 'eq'?
    """
    metric, separator, comparison = name.rpartition("__")
    if not separator:
        check_name(name)
        raise ArgumentError(f"{name!r} says no comparison; write {name}__max, {name}__eq or {name}__min")
    if comparison not in COMPARISONS:
        raise ArgumentError(f"unknown comparison {comparison!r} in {name!r}{did_you_mean(comparison, COMPARISONS)}")
    check_name(metric)
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise ArgumentTypeError(f"{name} must be a whole number, got {limit!r}")
    if limit < 0:
        raise ArgumentError(f"{name} must be 0 or more, got {limit}; counts are never negative")
    return Budget(metric, comparison, limit)


def check(budget: Budget, counts: Counts) -> Check:
    """Compare one budget with counts.

    Raises:
        ArgumentError: the operator can never be counted, for example because it is misspelt.

    >>> print(check(Budget("operators", "max", 1), Counts(operators={"aten::mm": 2})))
    operators is 2, allowed: at most 1
        2 aten::mm
    """
    actual = counts[budget.metric]
    if "::" in budget.metric and not actual and (why := _why_never_counted(budget.metric)):
        raise ArgumentError(f"a budget on {budget.metric!r} decides nothing: {why}")
    passed = actual is not None and bool(COMPARISONS[budget.comparison](actual, budget.limit))
    rule = f"{_WORDS[budget.comparison]} {budget.limit}"
    return Check(budget.metric, rule, actual, passed, () if passed else _evidence(budget.metric, actual, counts))


def doubts(budget: Budget, counts: Counts) -> Iterator[str]:
    """Yield reasons why a budget that was kept may be meaningless.

    >>> list(doubts(Budget("syncs", "eq", 0), Counts(operators={"aten::mm": 1}, environment={"device": "cpu"})))
    ['syncs cannot occur here: no GPU was in use']
    """
    metric = budget.metric
    if not counts[metric]:
        if not counts.operators:
            yield f"{metric}: no operator ran at all; work in other threads or processes is not counted"
        elif metric in DEVICE_METRICS and counts.environment.get("device") == "cpu":
            yield f"{metric} cannot occur here: no GPU was in use"
        elif metric in COMPILER_METRICS and counts.compilations == counts.compiled_before == 0:
            yield f"{metric} cannot occur here: torch.compile has compiled nothing in this process"
        elif "::" in metric and not _is_known(metric):
            yield f"{metric}: none was called, and no operator of that name is known here"
    yield from (note for note in counts.notes if re.match(rf"{metric}\b|[\w, ]*\b{metric}\b[\w, ]*:", note))


def _why_never_counted(operator: str) -> str | None:
    from torchwhy.counters.composite_operators import (
        why_never_counted,  # PyTorch knows the names; other budgets need none
    )

    return why_never_counted(operator)


def _is_known(operator: str) -> bool:
    from torchwhy.counters.composite_operators import is_known

    return is_known(operator)


def why_unknown(metric: str, counts: Counts) -> tuple[str, ...]:
    """Return the notes on why a number was not counted: the notes that name it, or all."""
    return tuple(note for note in counts.notes if metric in note) or counts.notes or ("count(trace=True) records it",)


def _evidence(metric: str, actual: int | None, counts: Counts) -> tuple[str, ...]:
    if actual is None:
        return why_unknown(metric, counts)
    return tuple(map(str, few(counts.parts(metric))))
