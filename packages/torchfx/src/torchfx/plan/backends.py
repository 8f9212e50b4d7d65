"""Which operators the steps of a plan call, and the backends that serve them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchfx._ops import rows
from torchfx.plan.steps import ModuleStep, Plan, Step

__all__ = ["backend_lines", "operators_of"]

SAMPLES = 512


class _Recorded(TorchDispatchMode):
    """Keeps the names of the operators of this package that the dispatcher receives."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        namespace, _, name = str(func).partition(".")
        if namespace == "torchfx_ext":
            self.names[name.partition(".")[0]] = None
        return func(*args, **(kwargs or {}))


def operators_of(step: Step, device: torch.device) -> list[str] | None:
    """Return the operators that a step calls for a short silent signal; None where it refuses mono and stereo."""
    for channels in (1, 2):
        with torch.no_grad(), _Recorded() as recorded:
            try:
                step.run(torch.zeros(channels, SAMPLES, device=device))
            except (ValueError, TypeError, RuntimeError):  # some modules take stereo alone
                continue
        return list(recorded.names)
    return None


def backend_lines(plan: Plan) -> list[str]:
    """Return a line for each operator of each step, with its backend for tensors on the CPU, on CUDA and elsewhere."""
    by_name, lines = {row.operator: row for row in rows}, []
    for i, step in enumerate(plan.steps, 1):
        if isinstance(step, ModuleStep):
            lines.append(f"{i}. a module: called as it is")
            continue
        operators = operators_of(step, plan.device or torch.device("cpu"))
        if operators is None:
            lines.append(f"{i}. operators depend on the signal: it takes neither one channel nor two")
        elif not operators:
            lines.append(f"{i}. PyTorch's own operators on every device")
        for name in operators or ():
            served = "; ".join(f"{device} {by_name[name].text(device)}" for device in ("cpu", "cuda", "other"))
            lines.append(f"{i}. {name}: {served}")
    return lines
