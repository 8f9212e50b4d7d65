"""Warn once if consecutive pieces of one signal are processed separately, which loses the filter state between them."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from torchfx.checks import callers_level
from torchfx.core.processor import FilterChain
from torchfx.plan import plan_of

__all__ = ["look_for_seams"]

PIECES = 3
"""Three neighbours in order, of equal length, are not a coincidence."""

_before: tuple[Any, ...] = ()
_said = False


def look_for_seams(ys: Tensor, module: nn.Module, fs: float) -> None:
    """Warn once if a stateful chain was called on consecutive views of one signal.

    Args:
        ys: the samples to process (channels, time), a view into a larger storage.
        module: the chain.
        fs: sample rate, Hz.
    """
    global _before, _said
    if _said or torch.compiler.is_dynamo_compiling():
        return
    base, place = ys._base, ys.storage_offset()
    if base is None or base.shape[:-1] != ys.shape[:-1]:
        return
    key = (id(module), id(base), ys.shape, ys.stride(), fs)
    count = 1
    if _before and _before[0] == key and _before[1]() is base and place == _before[2] + ys.shape[-1] * ys.stride(-1):
        count = _before[3] + 1
    _before = (key, weakref.ref(base), place, count)
    if count < PIECES or not _has_memory(module, ys, fs):
        return
    _said, _before = True, ()
    warnings.warn(
        f"{count} waves in a row were pieces of one signal, each after the other, and the chain began each from rest: "
        f"what it remembers is lost between them. torchfx.realtime.Stream(chain, fs, channels) keeps it from block to "
        f"block, torchfx.realtime.process_file reads files in blocks. Said once; separate examples are not concerned",
        UserWarning,
        stacklevel=callers_level(),
    )


def _has_memory(module: nn.Module, ys: Tensor, fs: float) -> bool:
    plan, shape = plan_of(FilterChain(module), fs), tuple(ys.shape[:-1])
    return not plan.refusal and any(step.init_state(shape, ys.dtype, ys.device) for step in plan.steps)
