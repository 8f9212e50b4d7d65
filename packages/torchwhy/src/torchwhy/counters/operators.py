"""What an operator is, and what a call of it means: whether it copies, and whether the host waits for it.

Pure functions of an operator's name and arguments. They ask tensors for device, dtype and size only, so fake tensors
serve as well as real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

__all__ = ["COPIES", "PYTORCH_NAMESPACES", "SILENT", "Facts", "copy_of", "facts_of", "is_native", "waits"]

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

# Operators whose result the host must know before it can go on: a number, or a shape that depends on values.
_NEEDS_VALUES = frozenset(
    {
        *("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero", "aten::masked_select"),
        *("aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive"),
        *("aten::unique_dim_consecutive", "aten::bincount", "aten::repeat_interleave"),
    }
)

_INDEXING = frozenset({"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"})
_FROM_PYTHON = "aten::lift_fresh"  # ends torch.tensor(values, device=...), whose copy is below the dispatcher
COPIES = frozenset({"aten::_to_copy", "aten::copy_", "aten::clone", "aten::copy"})
_MOVING = COPIES | _INDEXING | _NEEDS_VALUES | {_FROM_PYTHON}  # every operator that `copy_of` and `waits` ask about
SILENT = ("prim", "profiler")  # namespaces whose operators read a property or mark a stretch, and compute nothing
_SHARING = frozenset({"aten::_unsafe_view"})  # the result shares its argument's storage although the schema hides it


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
    if operator.namespace in SILENT:
        return Facts(schema.name, False, False, False, silent=True)
    return Facts(
        name=schema.name,
        native=is_native(operator.namespace),
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd"),
        makes_tensors=schema.name not in _SHARING
        and bool(schema.returns)
        and all(value.alias_info is None for value in schema.returns),
        moves=schema.name in _MOVING,
    )


def copy_of(operator: str, args: Sequence[Any], result: Any) -> tuple[str, int] | None:
    """Return the kind of copy (`HtoD`, `DtoH`, `DtoD`, `HtoH`) and the bytes written, or None for no copy."""
    if operator == _FROM_PYTHON and _on_device(args):
        return "HtoD", args[0].numel() * args[0].element_size()
    if operator not in COPIES or not args or not isinstance(result, torch.Tensor):
        return None
    source = args[1] if operator in ("aten::copy_", "aten::copy") else args[0]
    if not isinstance(source, torch.Tensor) or "meta" in (source.device.type, result.device.type):
        return None
    kind = f"{_side(source)}to{_side(result)}"
    return kind, result.numel() * result.element_size()


def waits(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any = None) -> bool:
    """Return whether the host waits for a device in this call.

    It does where it reads a value, where a shape depends on values, and in copies between host and device that are
    not `non_blocking`. On the CPU nothing waits: the work is done when the call returns.
    """
    if operator == _FROM_PYTHON:
        return _on_device(args)
    if operator in _NEEDS_VALUES:
        if operator == "aten::repeat_interleave" and kwargs.get("output_size") is not None:
            return False
        return _on_device(args)
    if operator in _INDEXING:
        masks = [index for index in args[1] if index is not None and index.dtype in (torch.bool, torch.uint8)]
        return _on_device(masks)
    if operator in ("aten::_to_copy", "aten::copy_"):
        copy = copy_of(operator, args, args[0] if operator == "aten::copy_" else result)
        blocking = not (kwargs.get("non_blocking") or (operator == "aten::copy_" and len(args) > 2 and args[2]))
        return blocking and copy is not None and copy[0] in ("HtoD", "DtoH")
    return False


def _side(tensor: torch.Tensor) -> str:
    return "H" if tensor.device.type == _HOST else "D"


def _on_device(values: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.device.type not in (_HOST, "meta") for value in values)
