"""PyTorch's operators on single samples, by the native steps of programs for large signals on the CPU.

PyTorch runs such operators on OpenMP's threads from 32,768 elements on. Where other work keeps a processor busy, each
waits at its end for a thread that has not begun: 15 to 40 ms with two threads, for 0.1 ms of arithmetic. The library's
own pool hands out parts, and a thread that comes late finds none left.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.memory import empty, raise_for
from torchfx._ops.observers import profiler_enabled
from torchfx._ops.operator import is_native
from torchfx._ops.program import Program

__all__ = ["clamp", "clone", "flip", "scale"]

LARGE = 32_768
"""Elements from which on PyTorch's operators run on several threads."""

NEVER = 2**62
"""A threshold for splitting in time that no signal reaches."""


def clamp(x: Tensor, low: float, high: float) -> Tensor:
    """Return the samples (...) within limits."""
    return _run(_limits(x.dtype, low, high), x) if _is_large(x) else x.clamp(low, high)


def clone(x: Tensor) -> Tensor:
    """Return a copy (...)."""
    return _run(_factor(x.dtype), x) if _is_large(x) else x.clone()


def flip(x: Tensor) -> Tensor:
    """Return a signal (..., time) backwards."""
    return _run(_factor(x.dtype), x, backwards=True) if _is_large(x) else x.flip(-1)


def scale(x: Tensor, factors: Tensor) -> None:
    """Multiply each sample of a signal (..., time) in place by its factor (time,)."""
    if torch.compiler.is_compiling() or x.numel() < LARGE or x.requires_grad or not x.is_cpu:
        x.mul_(factors)
        return
    time = x.shape[-1]
    length = max(1, (LARGE - 1) // (x.numel() // time))  # PyTorch takes such parts on one thread
    for start in range(0, time, length):
        count = min(length, time - start)
        x.narrow(-1, start, count).mul_(factors.narrow(0, start, count))


def _is_large(x: Tensor) -> bool:
    """Return whether native steps run: not while a gradient is recorded, nor where operators are observed."""
    if torch.compiler.is_compiling() or x.numel() < LARGE or native.library is None:
        return False
    recorded = x.requires_grad and torch.is_grad_enabled()
    return x.is_cpu and is_native(x) and x.is_contiguous() and not recorded


def _run(program: Program, x: Tensor, backwards: bool = False) -> Tensor:
    y, time = empty(x.shape, x.dtype, x), x.shape[-1]
    first = x.data_ptr() + (time - 1) * x.element_size() * backwards
    pack, run = native.call["program_run"]
    arguments = pack(
        *program.words.buffer_info(), first, time, -1 if backwards else 1, y.data_ptr(), time, x.numel() // time, time,
        NEVER, torch.get_num_threads(),
    )  # fmt: skip
    if profiler_enabled():
        with torch._C._profiler._RecordFunctionFast("torchfx_ext::" + "+".join(program.kinds), [x]):
            status = run(arguments)
    else:
        status = run(arguments)
    if status:
        raise_for(status, "program_run")
    return y


@cache
def _factor(dtype: torch.dtype) -> Program:
    program = Program((), dtype)
    program.finish(program.gain(0, 1.0))
    return program


@cache
def _limits(dtype: torch.dtype, low: float, high: float) -> Program:
    program = Program((), dtype)
    program.finish(program.clamp(0, low, high))
    return program
