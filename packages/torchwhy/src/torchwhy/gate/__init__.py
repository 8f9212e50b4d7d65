"""Budgets for the counts of a program, checked in tests and in CI; reading and checking do not need PyTorch.

kernel_launches__max=12, syncs__eq=0, graph_breaks__eq=0
"""

from __future__ import annotations

from torchwhy.gate.baseline import Baseline, EnvironmentMismatch
from torchwhy.gate.budget import Budget, Check, parse_budgets
from torchwhy.gate.document import gate_document
from torchwhy.gate.pyproject import budgets_from
from torchwhy.gate.report import GateReport, gate

__all__ = [
    "Baseline",
    "Budget",
    "Check",
    "EnvironmentMismatch",
    "GateReport",
    "budgets_from",
    "gate",
    "gate_document",
    "parse_budgets",
]
