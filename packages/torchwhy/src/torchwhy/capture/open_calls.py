"""What PyTorch is inside of at the moment, and may therefore write about later.

PyTorch writes the end of a call into the recording that the call began in, whenever any recording runs then (2.13,
`onFunctionExit` in torch/csrc/autograd/profiler_kineto.cpp). It frees that memory when the recording ends. So a call
that is open while one recording ends must have ended before the next begins, or the heap is corrupted.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from types import FrameType
from typing import Any, Final

__all__ = ["detach_labels", "inside_pytorch", "inside_transform"]

DEEPEST: Final = 4096  # frames of C that are read; a stack that is deeper counts as inside PyTorch


class _Symbol(ctypes.Structure):
    """`Dl_info` of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )
    file: bytes | None


def inside_pytorch() -> bool:
    """Whether PyTorch has called the Python code that runs now: an operator or a backward pass is open.

    That is so in a custom `autograd.Function`, a reentrant checkpoint, an operator written in Python, a compiled region
    and hooks of the backward pass. It is read from the C stack; False where the system can't show that (Windows, musl).
    It is also so, on every system, while a label begins or ends: `detach_labels` does not see such a label.
    """
    if _label_begins_or_ends():
        return True
    library = _native_stack()
    if library is None:
        return False
    frames = (ctypes.c_void_p * DEEPEST)()
    depth = library.backtrace(frames, DEEPEST)
    return depth == DEEPEST or any(_is_pytorchs(address) for address in frames[:depth] if address)


def _label_begins_or_ends() -> bool:
    """Whether `record_function` runs now: it keeps the open call in a local variable for some bytecodes.

    The interpreter may make a pending call or run a signal handler there. It often does when a garbage collection has
    just ended: the collection holds Python's lock, other threads wait for that, and the collection's label ends then.
    """
    file = getattr(sys.modules.get("torch.autograd.profiler"), "__file__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame is not None


def inside_transform() -> bool:
    """Whether a function runs that `torch.func` transforms, such as by `vmap` or `grad`.

    A recording that begins there holds nothing: each operator of the transform gives the thread back the recording that
    it began in.
    """
    torch = sys.modules.get("torch")
    peek = getattr(getattr(getattr(torch, "_C", None), "_functorch", None), "peek_interpreter_stack", None)
    return peek is not None and peek() is not None


@functools.cache
def _native_stack() -> Any:
    """The C library, or None where it has no `backtrace`."""
    try:
        library = ctypes.CDLL(None)
        library.backtrace, library.dladdr  # noqa: B018  (looks them up)
    except (AttributeError, OSError, TypeError):
        return None
    return library


@functools.cache
def _is_pytorchs(address: int) -> bool:
    """Whether code at this address belongs to one of PyTorch's libraries; stacks show the same addresses every time."""
    symbol = _Symbol()
    if not _native_stack().dladdr(ctypes.c_void_p(address), ctypes.byref(symbol)):
        return False
    return b"torch" in (symbol.file or b"").replace(b"\\", b"/").rpartition(b"/")[2]


_detached: list[Any] = []
"""The memory of open labels of recordings that have ended."""


def detach_labels() -> None:
    """Take labels (`record_function`) that are open out of the recording that has just ended; none may be running.

    A label of the program may be open for long, around its whole loop for instance. `Optimizer.step` runs in one, too.
    """
    import torch
    from torch.autograd.profiler import record_function

    _detached.clear()  # what the last recording left ends here, where it writes nothing
    classes: list[type[Any]] = [record_function]
    for one in classes:
        classes.extend(type.__subclasses__(one))
    # An object refers to its class. To look at all objects in Python takes ten times as long.
    for thing in gc.get_referrers(*classes):
        # type() and not isinstance(): proxies would be made to load what they stand for.
        if type(thing) in classes and thing.record is not None:
            _detached.append(thing.record)
            thing.record = torch.ops.profiler._record_function_enter_new(thing.name, thing.args)
