"""How a Triton kernel is launched: device, stream, compiler options."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import lru_cache
from importlib.util import find_spec
from subprocess import SubprocessError
from typing import Any

import torch
from torch import Tensor

__all__ = ["LOG_TOLERANCE", "OPTIONS", "KernelError", "launch", "processors", "split", "warp_size", "why_missing"]

why_missing = "" if find_spec("triton") is not None else "needs triton, which isn't installed"

OPTIONS = {"num_warps": 1, "enable_fp_fusion": False}
"""Products are fused where the kernel says so."""

LOG_TOLERANCE = {4: math.log(1e-10), 8: math.log(1e-14)}
"""What a chunk may neglect of the samples before its warm-up, in the peak, by the bytes of a sample."""

_compiled: dict[Any, tuple[Any, tuple[Any, ...]]] = {}
"""Compiled kernels with the constants they take, by all that Triton distinguishes, which takes longer to find them."""

INTERPRETED = (132, 32)
"""Multiprocessors and lanes of a warp that CPU tensors, which only Triton's interpreter takes, are cut for."""


class KernelError(RuntimeError):
    """Triton has no kernel for this device: it can't compile it, or doesn't know the device."""


def launch(kernel: Any, programs: int, x: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launch on the device of x and on its current stream.

    Raises:
        KernelError: the kernel can't be compiled or launched there.
    """
    device = x.device
    elsewhere = x.is_cuda and device.index != torch.cuda.current_device()
    with torch.cuda.device(device) if elsewhere else nullcontext():
        key = (id(kernel), device, *constants.values(), *map(_distinguished, arguments))
        known = _compiled.get(key)
        if known is not None:
            known[0][(programs, 1, 1)](*arguments, *known[1])
            return
        from triton.errors import TritonError

        try:
            found = kernel[(programs,)](*arguments, **{**OPTIONS, **constants})
        except (TritonError, RuntimeError, OSError, SubprocessError) as error:
            reason = (str(error).strip() or "no reason given").splitlines()[-1]
            raise KernelError(f"{type(error).__name__}: {reason}") from error
        if found is not None:  # the interpreter compiles nothing
            _compiled[key] = found, tuple(constants[name] for name in kernel.arg_names[len(arguments) :])


def _distinguished(argument: Any) -> Any:
    """Return what Triton may compile a kernel of its own for: types, alignment, ones, multiples of 16."""
    if isinstance(argument, Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    if isinstance(argument, int):
        return argument == 1, argument % 16 == 0, argument.bit_length() > 31
    return argument


def split(tiles: int, wanted: int) -> tuple[int, int]:
    """Return into how many chunks, at most as many as wanted, a channel is cut, and the tiles of each."""
    chunk_tiles = -(-tiles // max(1, min(tiles, wanted)))
    return -(-tiles // chunk_tiles), chunk_tiles


def processors(x: Tensor) -> int:
    """Return how many multiprocessors the device of x has."""
    return _properties(x.device)[0]


def warp_size(x: Tensor) -> int:
    """Return how many lanes a warp of the device of x has."""
    return _properties(x.device)[1]


@lru_cache
def _properties(device: torch.device) -> tuple[int, int]:
    if device.type != "cuda":
        return INTERPRETED
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count, found.warp_size
