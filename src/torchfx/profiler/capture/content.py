"""What the recorded windows hold, in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torchfx.profiler.capture.operators import is_on_cpu, is_step, kind_of

__all__ = ["Content"]


@dataclass(frozen=True)
class Content:
    """How much was recorded.

    Attributes:
        steps: frames around a step.
        calls: operators and annotations on the CPU.
        kernels: what ran on a device.
    """

    steps: int
    calls: int
    kernels: int

    @classmethod
    def of(cls, events: Iterable[Any]) -> Content:
        """Count `FunctionEvent`s of all windows."""
        steps = calls = kernels = 0
        for event in events:
            kind = kind_of(event)
            steps += is_step(event) and is_on_cpu(event)
            calls += kind in {"operator", "annotation"}
            kernels += kind == "kernel"
        return cls(steps, calls, kernels)
