"""The memory of a tensor on the processor, and samples of it."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import torch

__all__ = ["UnlikeError", "memory_of", "on_processor", "pieces_of"]

PIECES: Final = 64
PIECE: Final = 32
"""The number of pieces in a larger memory's sample, and the bytes of each. If samples differ, so do the contents."""

_READ_ONLY: Final = 0x100  # PyBUF_READ
_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})


class UnlikeError(Exception):
    """An argument whose contents can't be compared."""


def on_processor(tensor: torch.Tensor) -> bool:
    """Whether a tensor's contents are its bytes in the processor's memory."""
    return (
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not tensor.is_nested
        and type(tensor) in _PLAIN
    )


def memory_of(tensor: torch.Tensor) -> memoryview:
    """Return the bytes from a tensor's first element to its last, with what lies between them: no copy.

    It does not keep the tensor.

    Args:
        tensor: one that is `on_processor`.

    Raises:
        UnlikeError: the tensor's storage is smaller.
    """
    if not tensor.numel():
        return memoryview(b"")
    elements = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    address, size = tensor.data_ptr(), elements * tensor.element_size()
    there = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
    if not address or size > there:  # a program may shrink the storage below a tensor
        raise UnlikeError
    memory: memoryview = _view(ctypes.c_void_p(address), ctypes.c_ssize_t(size), _READ_ONLY)
    return memory


_view: Final[Any] = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object


def pieces_of(memory: memoryview) -> bytes | memoryview:
    """Return a sample of a memory, from its first bytes to its last; all of it where it is small."""
    size = len(memory)
    if size <= 2 * PIECES * PIECE:
        return memory
    step = (size - PIECE) // PIECES // 8 * 8  # numbers stay whole
    return b"".join([memory[at : at + PIECE] for at in range(0, size - PIECE, step)])
