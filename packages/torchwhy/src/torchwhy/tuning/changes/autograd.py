"""The work of autograd besides the program's arithmetic, and Python's garbage collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchwhy.tuning.change import Change, changes
from torchwhy.tuning.records import Facts

__all__ = ["anomaly_detection", "garbage_collection", "gradients"]


@changes("anomaly-mode")
def anomaly_detection(facts: Facts) -> Iterator[Change]:
    """No anomaly detection."""
    if facts.anomaly:
        line = "torch.autograd.set_detect_anomaly(False)  # or leave detect_anomaly out"
        yield Change("no anomaly detection", (line,), apply=_detect_nothing)


def _detect_nothing(observer: Any) -> None:
    import torch

    name = "set_anomaly_enabled"  # what `set_detect_anomaly` and `detect_anomaly` call
    setattr(torch, name, lambda mode, check_nan=True: None)


@changes("missed-no-grad")
def gradients(facts: Facts) -> Iterator[Change]:
    """No graph for a backward pass that never runs."""
    if not facts.trained:
        line = "torch.set_grad_enabled(False)  # after import torch; or with torch.inference_mode(): around the loop"
        yield Change("no gradients", (line,), apply=_record_no_graph)


def _record_no_graph(observer: Any) -> None:
    import torch

    torch.set_grad_enabled(False)


@changes("gc-pause", asked=True)
def garbage_collection(facts: Facts) -> Iterator[Change]:
    """Python collects garbage rarely."""
    line = "gc.set_threshold(100_000, 50, 1000)  # after import gc"
    yield Change("rare garbage collection", (line,), apply=_collect_rarely)


def _collect_rarely(observer: Any) -> None:
    import gc

    gc.set_threshold(100_000, 50, 1000)
