"""Budgets on what a program does, checked in tests and in CI; reading and checking need no PyTorch.

kernel_launches__max=12, syncs__eq=0, graph_breaks__eq=0
"""

from __future__ import annotations

from torchfx.profiler.gate.baseline import Baseline, EnvironmentMismatch
from torchfx.profiler.gate.budget import Budget, Check, parse_budgets
from torchfx.profiler.gate.formats import FORMATS, render
from torchfx.profiler.gate.pyproject import budgets_from
from torchfx.profiler.gate.report import Report, gate

__all__ = [
    "FORMATS",
    "Baseline",
    "Budget",
    "Check",
    "EnvironmentMismatch",
    "Report",
    "budgets_from",
    "gate",
    "parse_budgets",
    "render",
]
