"""How modules and optimizers are executed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from torchwhy.tuning.change import Change, changes
from torchwhy.tuning.records import Facts

__all__ = ["channels_last", "cudnn_benchmark", "fused_optimizer"]

FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers that have `fused`."""


@changes("layout-conversion", "cpu-hotspot", "low-roofline")
def channels_last(facts: Facts) -> Iterator[Change]:
    """Images lie in memory with their channels together."""
    if facts.images and not facts.compiled:
        names = " and ".join(facts.modules)
        line = f"model = model.to(memory_format=torch.channels_last)  # before the optimizer is made; model: {names}"
        yield Change("channels last", (line, "x = x.to(memory_format=torch.channels_last)"), apply=_order_channels)


def _order_channels(observer: Any) -> None:
    import torch

    observer.at_first_call.append(lambda module: module.to(memory_format=torch.channels_last))


@changes("cudnn-benchmark")
def cudnn_benchmark(facts: Facts) -> Iterator[Change]:
    """cuDNN measures which algorithm is the fastest for each shape."""
    if facts.cuda and facts.images and not facts.cudnn_benchmark:
        line = "torch.backends.cudnn.benchmark = True  # after import torch"
        yield Change("cuDNN benchmark", (line,), apply=_benchmark)


def _benchmark(observer: Any) -> None:
    import torch

    torch.backends.cudnn.benchmark = True


@changes("optimizer-for-loop")
def fused_optimizer(facts: Facts) -> Iterator[Change]:
    """One operator updates all parameters."""
    names = [name for name in facts.optimizers if name in FUSED]
    if names and not facts.fused and not facts.compiled:
        lines = tuple(f"torch.optim.{name}(..., fused=True)" for name in names)
        yield Change("fused optimizer", lines, apply=_fuse)


def _fuse(observer: Any) -> None:
    import torch

    for name in FUSED:
        owner: Any = getattr(torch.optim, name)
        make = "__init__"
        setattr(owner, make, _with_fused(owner.__init__))


def _with_fused(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def make(*args: Any, **named: Any) -> None:
        bound = signature.bind(*args, **named)
        if not any(bound.arguments.get(other) for other in ("differentiable", "foreach")):
            bound.arguments["fused"] = True
        original(*bound.args, **bound.kwargs)

    return make
