"""Properties of operators and of their calls: whether a call copies, and whether the host waits for it.

Pure functions of an operator's name and arguments. They ask tensors for device, dtype and size only, so fake tensors
serve as well as real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from torchwhy.trace.meaning.operators import (
    BLOCKING_COPY,
    DISPATCHED_COPY,
    INDEXING,
    INTO,
    LIFT,
    NEEDS_VALUES,
    REPEAT,
    SIZE_BY_VALUES,
    UNSAFE_VIEW,
)

__all__ = ["PYTORCH_NAMESPACES", "SILENT", "Facts", "copy_of", "facts_of", "is_native", "waits"]

_HOST = "cpu"

# The namespaces that `import torch` itself fills (a test compares), and those its parts add when they are used.
PYTORCH_NAMESPACES = frozenset(
    {
        *("aten", "prim", "prims", "higher_order", "profiler", "streams", "export", "aoti", "sparse", "rngprims"),
        *("c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "fsdp", "symm_mem", "_dtensor"),
        "cplib",
        *("inductor", "inductor_prims", "_inductor_test", "flex_lib", "debugprims", "debug_mode_ops", "static_runtime"),
        *("mkl", "mkldnn", "mkldnn_prepacked", "onednn", "xnnpack", "prepacked", "fbgemm", "onnx", "onnx_symbolic"),
        *("quantized", "_quantized", "quantization", "quantized_decomposed", "rpc", "_native", "_nested", "_spmd"),
        "_test",
    }
)

_MOVING = DISPATCHED_COPY | SIZE_BY_VALUES | NEEDS_VALUES | LIFT  # every operator that `copy_of` and `waits` ask about
SILENT = ("prim", "profiler")  # namespaces whose operators read a property or mark a stretch, and compute nothing


def is_native(namespace: str) -> bool:
    """Return whether operators of this namespace come from outside PyTorch.

    >>> is_native("torchvision"), is_native("aten")
    (True, False)
    """
    return namespace not in PYTORCH_NAMESPACES


@dataclass(frozen=True)
class Facts:
    """Facts about one operator.

    Args:
        name: `aten::addmm`, without the overload.
        native: it lies outside PyTorch's namespaces.
        composite: it is only a recipe made of other operators; autograd unfolds it, `inference_mode` does not.
        makes_tensors: by its schema its results are new, neither views nor its arguments.
        moves: it may copy tensors, or make the host wait.
        flops: the formula of `torch.utils.flop_counter`: its arguments, and `out_val`, the result, to operations.
        silent: it reads a property of a tensor or marks a stretch for a profiler, and computes nothing.
    """

    name: str
    native: bool
    composite: bool
    makes_tensors: bool
    moves: bool = False
    flops: Callable[..., int] | None = None
    silent: bool = False


@cache
def facts_of(operator: Any) -> Facts:
    """Return the facts of an `OpOverload`, or of a higher-order operator such as `torch.cond`."""
    if not isinstance(operator, torch._ops.OpOverload):
        return Facts(f"higher_order::{operator.name()}", False, False, False)
    schema = operator._schema
    if operator.namespace in SILENT:
        return Facts(schema.name, False, False, False, silent=True)
    return Facts(
        name=schema.name,
        native=is_native(operator.namespace),
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd"),
        makes_tensors=not UNSAFE_VIEW.names(schema.name)
        and bool(schema.returns)
        and all(value.alias_info is None for value in schema.returns),
        moves=_MOVING.names(schema.name),
        flops=flop_registry.get(operator.overloadpacket),
    )


def copy_of(operator: str, args: Sequence[Any], result: Any) -> tuple[str, int] | None:
    """Return the kind of copy (`HtoD`, `DtoH`, `DtoD`, `HtoH`) and the bytes written, or None for no copy."""
    if LIFT.names(operator) and _on_device(args):
        return "HtoD", args[0].numel() * args[0].element_size()
    if not DISPATCHED_COPY.names(operator) or not args or not isinstance(result, torch.Tensor):
        return None
    source = args[1] if INTO.names(operator) else args[0]
    if not isinstance(source, torch.Tensor) or "meta" in (source.device.type, result.device.type):
        return None
    kind = f"{_side(source)}to{_side(result)}"
    return kind, result.numel() * result.element_size()


def waits(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any = None) -> bool:
    """Return whether the host waits for a device in this call.

    It does where it reads a value, where a shape depends on values, and in copies between host and device that are
    not `non_blocking`. On the CPU nothing waits: the work is done when the call returns.
    """
    if LIFT.names(operator):
        return _on_device(args)
    if NEEDS_VALUES.names(operator):
        if REPEAT.names(operator) and kwargs.get("output_size") is not None:
            return False
        return _on_device(args)
    if INDEXING.names(operator):
        masks = [index for index in args[1] if index is not None and index.dtype in (torch.bool, torch.uint8)]
        return _on_device(masks)
    if BLOCKING_COPY.names(operator):
        into = INTO.names(operator)
        copy = copy_of(operator, args, args[0] if into else result)
        blocking = not (kwargs.get("non_blocking") or (into and len(args) > 2 and args[2]))
        return blocking and copy is not None and copy[0] in ("HtoD", "DtoH")
    return False


def _side(tensor: torch.Tensor) -> str:
    return "H" if tensor.device.type == _HOST else "D"


def _on_device(values: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.device.type not in (_HOST, "meta") for value in values)
