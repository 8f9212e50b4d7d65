"""How profilers see designs: how long they take, and whether the same coefficients were designed before."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx._ops.observers import profiler_enabled
from torchfx.tensors import is_readable

__all__ = ["note", "recorded"]

_MOST: Final = 4096
"""Designs that are remembered."""

_seen: set[bytes] = set()
"""Digests of the coefficients that were designed while a profiler looked."""


def recorded(design: Callable[[Any], Tensor], rate: Any) -> Tensor:
    """Return the coefficients of a design at a sample rate (Hz).

    A profiler records it as `torchfx design`, with `torchfx design again` inside if an earlier design gave the same
    coefficients.
    """
    if torch.compiler.is_dynamo_compiling() or not profiler_enabled():
        return design(rate)
    with torch._C._profiler._RecordFunctionFast("torchfx design"):
        found = design(rate)
        if found.is_cpu and not found.requires_grad and is_readable(found):
            note(found.numpy())
        return found


def note(coefficients: npt.NDArray[np.float64]) -> None:
    """Record `torchfx design again` if a profiler looks and has seen a design of the same coefficients."""
    if not profiler_enabled():
        return
    digest = blake2b(coefficients.tobytes(), digest_size=16, salt=str(coefficients.shape).encode()[:16]).digest()
    if digest in _seen:
        with torch._C._profiler._RecordFunctionFast("torchfx design again"):
            return
    if len(_seen) >= _MOST:
        _seen.clear()
    _seen.add(digest)
