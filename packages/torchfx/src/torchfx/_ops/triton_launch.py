"""How a Triton kernel is launched: device, stream, compiler options."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from subprocess import SubprocessError
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

__all__ = [
    "LOG_TOLERANCE",
    "OPTIONS",
    "KernelError",
    "device_properties",
    "float64_is_slow",
    "kernels",
    "launch",
    "processors",
    "split",
    "warp_size",
    "why_missing",
]

why_missing = "" if find_spec("triton") is not None else "needs triton: pip install triton"

OPTIONS = {"num_warps": 1, "enable_fp_fusion": False}
"""Products are fused where the kernel says so."""

LOG_TOLERANCE = {4: math.log(1e-10), 8: math.log(1e-14)}
"""Logarithm of the largest relative error from samples before a chunk's warm-up, by the bytes of a sample."""

REMEMBERED = 1024

_compiled: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}
"""Compiled kernels with the constants they take, by all arguments but addresses, of which the alignment counts.

Triton, which asks each argument whether a special kernel was compiled for it, takes longer to find them. The last
`REMEMBERED` launches at most are kept, as signals of many lengths make as many.
"""

INTERPRETED = (132, 32)
"""Multiprocessors and lanes of a warp that CPU tensors, which only Triton's interpreter takes, are cut for."""

INTERPRETED_FLOAT64_IS_SLOW = False

FAST_FLOAT64 = {(6, 0), (7, 0), (7, 2), (8, 0), (9, 0), (10, 0)}
"""Compute capabilities with float64 at 1/2 of the rate of float32; all others have 1/32 or 1/64. Source: NVIDIA, CUDA
C++ Programming Guide, "Throughput of native arithmetic instructions"."""


class KernelError(RuntimeError):
    """Triton has no kernel for this device: it can't compile it, or doesn't know the device."""


def launch(kernel: Any, programs: int, x: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch on the device of x and on its current stream.

    Raises:
        KernelError: the kernel can't be compiled or launched there.
        OutOfMemoryError: the device has no room for its code.
        RuntimeError: a graph is being captured, and the kernel isn't loaded yet.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():
        with torch.cuda.device(x.device):
            launch(kernel, programs, x, *arguments, **constants)
        return
    key, values = [id(kernel), x.get_device(), *constants.values()], []
    for argument in arguments:
        if isinstance(argument, Tensor):
            address = argument.data_ptr()
            key += argument.dtype, address & 15
            values.append(address)  # else Triton asks the tensor once more, and the driver whose address it is
        else:
            key.append(argument)
            values.append(argument)
    launched_as = tuple(key)
    known = _compiled.get(launched_as)
    if known is not None:
        known[0][(programs, 1, 1)](*values, *known[1])
        return
    from triton.errors import TritonError

    try:
        found = kernel[(programs,)](*arguments, **{**OPTIONS, **constants})
    except (TritonError, RuntimeError, OSError, SubprocessError) as error:
        reason = (str(error).strip() or "no reason given").splitlines()[-1]
        why = f"{type(error).__name__}: {reason}"
        # The next two pass: the device has a kernel then.
        if "out of memory" in reason:
            raise torch.OutOfMemoryError(why) from error
        if x.is_cuda and torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"run this once before a graph is captured, so that its kernel is loaded: {why}"
            ) from error
        raise KernelError(why) from error
    if found is not None:  # the interpreter compiles nothing
        if len(_compiled) == REMEMBERED:
            _compiled.clear()
        _compiled[launched_as] = found, tuple(constants[name] for name in kernel.arg_names[len(arguments) :])


@cache
def kernels(package: str) -> ModuleType:
    """Return the kernels of an operator's package, loaded at the first launch: Triton takes long to load."""
    return import_module(f"{package}.kernels")


def split(tiles: int, wanted: int) -> tuple[int, int]:
    """Return into how many chunks, at most as many as wanted, a channel is cut, and the tiles of each."""
    chunk_tiles = -(-tiles // max(1, min(tiles, wanted)))
    return -(-tiles // chunk_tiles), chunk_tiles


def processors(x: Tensor) -> int:
    """Return how many multiprocessors the device of x has."""
    return device_properties(x.device)[0]


def warp_size(x: Tensor) -> int:
    """Return how many lanes a warp of the device of x has."""
    return device_properties(x.device)[1]


@cache
def device_properties(device: torch.device) -> tuple[int, int]:
    """Return how many multiprocessors a device has, and how many lanes a warp of it."""
    if device.type != "cuda":
        return INTERPRETED
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count, found.warp_size


@cache
def float64_is_slow(device: torch.device) -> bool:
    """Return whether a device computes in float64 at 1/32 of its float32 rate or slower, as consumers' chips do."""
    if device.type != "cuda":
        return INTERPRETED_FLOAT64_IS_SLOW
    return torch.version.hip is None and torch.cuda.get_device_capability(device) not in FAST_FLOAT64
