"""What is known of an operator before it is called; worked out once per operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from torchfx.profiler.counters.classify import MOVING, is_native

__all__ = ["Facts", "facts_of"]

_SHARING = frozenset({"aten::_unsafe_view"})  # the result shares its argument's storage although the schema hides it


@dataclass(frozen=True)
class Facts:
    """Facts about one operator.

    Args:
        name: `aten::addmm`, without the overload.
        native: it lies outside PyTorch's namespaces.
        composite: it is only a recipe made of other operators; autograd unfolds it, `inference_mode` does not.
        makes_tensors: by its schema its results are new, neither views nor its arguments.
        moves: it may copy tensors, or make the host wait.
        silent: it reads a property of a tensor or marks a stretch for a profiler, and computes nothing.
    """

    name: str
    native: bool
    composite: bool
    makes_tensors: bool
    moves: bool = False
    silent: bool = False


@cache
def facts_of(operator: Any) -> Facts:
    """Return the facts of an `OpOverload`, or of a higher-order operator such as `torch.cond`."""
    if not isinstance(operator, torch._ops.OpOverload):
        return Facts(f"higher_order::{operator.name()}", False, False, False)
    schema = operator._schema
    if operator.namespace in ("prim", "profiler"):
        return Facts(schema.name, False, False, False, silent=True)
    return Facts(
        name=schema.name,
        native=is_native(operator.namespace),
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd"),
        makes_tensors=schema.name not in _SHARING
        and bool(schema.returns)
        and all(value.alias_info is None for value in schema.returns),
        moves=schema.name in MOVING,
    )
