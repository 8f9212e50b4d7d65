"""Memory for large outputs, used again once its tensor has died.

The first touch of fresh memory, page by page, costs 1.1 ns a float, twice the filtering (measured on 4 KiB pages under
a hypervisor; asking the system to do it at once costs 1.05). What malloc has given back to the system is fresh again,
which programs that hold some outputs and drop others bring about again and again. Outputs from 512 KiB to 32 MiB
therefore lie in mappings of their own, of which at most 64 MiB are kept when their tensors have died.

Such a tensor is one over a NumPy array, as `torch.from_numpy` makes: all that PyTorch does with those works, and only
growing its storage in place raises.
"""

from __future__ import annotations

import mmap
import sys

import numpy as np
import torch
from torch import Tensor

__all__ = ["LARGEST", "SMALLEST", "reused"]

SMALLEST, LARGEST = 512 << 10, 32 << 20  # bytes of an output
KEPT = 64 << 20  # bytes of unused mappings

# No lock, which a forked child could find held and `__del__` could meet held by its own thread: single operations on
# a list are atomic, and two threads at once may at worst drop a mapping too many.
_unused: list[mmap.mmap] = []

_DTYPES = {torch.float32: np.float32, torch.float64: np.float64}


class Lent(np.ndarray):
    """What the tensor's storage holds on to."""

    def __del__(self) -> None:
        if isinstance(self.base, mmap.mmap):
            _give_back(self.base)


def reused(shape: tuple[int, ...], dtype: torch.dtype, size: int) -> Tensor:
    """Return an uninitialised contiguous CPU tensor; its `size` lies between `SMALLEST` and `LARGEST` bytes."""
    return torch.from_numpy(Lent(shape, _DTYPES[dtype], buffer=_take(size)))


def _take(size: int) -> mmap.mmap:
    step = 1 << (size.bit_length() - 4)  # an eighth, so that nearly equal outputs share mappings
    size = (size + step - 1) // step * step
    for mapping in reversed(_unused):
        if len(mapping) == size:
            try:
                _unused.remove(mapping)
            except ValueError:  # another thread was faster
                continue
            return mapping
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # else a forked child shares it
    if hasattr(mmap, "MADV_HUGEPAGE"):
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return mapping


def _give_back(mapping: mmap.mmap) -> None:
    _unused.append(mapping)
    surplus = sum(map(len, _unused)) - KEPT
    while surplus > 0 and _unused:
        surplus -= len(_unused.pop(0))
