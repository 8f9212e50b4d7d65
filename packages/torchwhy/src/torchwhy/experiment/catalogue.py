"""The workloads there are. A new one: its file, one line here."""

from __future__ import annotations

from torchwhy.errors import ArgumentError
from torchwhy.experiment.matmul_add import MATMUL_ADD
from torchwhy.experiment.workload import Workload

__all__ = ["WORKLOADS", "workload_named"]

WORKLOADS = {workload.name: workload for workload in (MATMUL_ADD,)}


def workload_named(name: str) -> Workload:
    """Return a workload; ArgumentError, with the names there are, for an unknown one.

    >>> workload_named("matmul-add").label
    'matmul_add'
    """
    if name not in WORKLOADS:
        raise ArgumentError(f"experiment must be one of {', '.join([*WORKLOADS, 'peaks'])}, got {name!r}")
    return WORKLOADS[name]
