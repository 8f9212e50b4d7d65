"""Whether a function did its work, or only promised to."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from torchwhy.errors import ArgumentTypeError
from torchwhy.timing.timing_warnings import TimingWarning
from torchwhy.trace.meaning.overhead import BUFFERS
from torchwhy.trace.meaning.runtime import DEVICE_SYNCHRONIZE
from torchwhy.wording import seconds

__all__ = ["Promise", "count_events", "nothing_ran", "promised", "refuse_coroutine"]

EMPTY_CALL_S = 2e-7  # an empty function takes 20 ns, a dictionary look-up 40 ns, the smallest operator 500 ns
LAZY_CALL_S = 1e-4  # building a deferred result is quick; what takes longer did something, if not with operators

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
_ITERATORS = (map, filter, zip, enumerate)


@dataclass(frozen=True)
class Promise:
    """Work that a result stands for without having done it, in words; `certain` when it cannot have been done."""

    what: str
    certain: bool = False

    def __str__(self) -> str:
        """Return the words."""
        return self.what


def refuse_coroutine(result: object) -> None:
    """Raise when a function turns out to be async: every call would make a coroutine and run none of it.

    Raises:
        ArgumentTypeError: `result` is a coroutine; it is closed.
    """
    if inspect.iscoroutine(result):
        result.close()
        raise ArgumentTypeError("fn must not be async: a call only makes a coroutine; time lambda: asyncio.run(fn())")


def promised(result: object) -> Promise | None:
    """Return what kind of unevaluated work an object is, or None if it is evaluated, or that is unknown.

    >>> print(promised(x for x in [1]), promised(3), promised(abs), sep="; ")
    an unconsumed generator; None; a function that was not called
    """
    if inspect.isgenerator(result) and inspect.getgeneratorstate(result) == inspect.GEN_CREATED:
        return Promise("an unconsumed generator")
    if isinstance(result, _ITERATORS):
        return Promise(f"a {type(result).__name__} that was not consumed")
    if isinstance(result, (Future, torch.futures.Future)) and not result.done():
        return Promise("a future that was not waited for")
    if isinstance(result, torch.Tensor) and result.device.type in {"meta", "lazy", "xla"}:
        return Promise(f"a tensor on the device {result.device.type!r}, where operators compute nothing yet", True)
    if isinstance(result, (*_FUNCTIONS, torch.nn.Module)):
        return Promise(f"{'a module' if isinstance(result, torch.nn.Module) else 'a function'} that was not called")
    return Promise(f"a {type(result).__name__} that holds tensors or modules") if _holds_work(result) else None


def nothing_ran(fn: Callable[[], Any], promise: Promise | None, call_s: float) -> TimingWarning | None:
    """Return a warning when a call ran no operator and either promised its work for later or took no time at all.

    Args:
        fn: the function; it is called once more, under the profiler, when there is a suspicion to check.
        promise: what its result promised.
        call_s: how long one call takes, in s.

    Silent when unsure: an operator ran, the call took as long as work takes, or another profiler is running.
    """
    if promise is not None and promise.certain:
        return _warning(f"fn returned {promise}", "time it on a real device, with its synchronisation inside fn")
    if call_s > LAZY_CALL_S or (promise is None and call_s > EMPTY_CALL_S) or count_events(fn) != 0:
        return None
    if promise is None:
        message = f"no operator ran and a call took {seconds(call_s)}, about what an empty function takes"
        return _warning(message, "check that fn calls what you want to time")
    return _warning(f"no operator ran; fn returned {promise}", "use the result inside fn, so that its work is done")


def count_events(fn: Callable[[], Any]) -> int | None:
    """Call `fn` once and return how many operators, compiled regions and device events the profiler saw.

    A plain `TorchDispatchMode` would change what runs: under one, compilation is off and a function that was compiled
    before stays eager afterwards (PyTorch 2.13), and operators such as flex_attention raise. The profiler only watches.

    None when another profiler is running, since a second one would end it.

    >>> import torch
    >>> x = torch.ones(2)
    >>> count_events(lambda: x + x), count_events(lambda: None)
    (1, 0)
    """
    if torch._C._autograd._profiler_enabled():
        return None
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_initialized():  # replaying a CUDA graph runs no operator, only a runtime call
        activities.append(ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        fn()
    return sum(not _is_closing(event.name) for event in profile.events())


def _is_closing(name: str) -> bool:
    """Whether an event belongs to the profiler's stop: its wait for the device, its buffers."""
    return DEVICE_SYNCHRONIZE.names(name) or BUFFERS.names(name)


def _holds_work(result: object) -> bool:
    """Whether an object of somebody's class keeps tensors or modules, as a deferred computation does."""
    if isinstance(result, torch.Tensor) or type(result).__module__ in {"builtins", "collections"}:
        return False
    values = getattr(result, "__dict__", {}).values()
    return any(isinstance(value, (torch.Tensor, torch.nn.Module)) for value in values)


def _warning(message: str, advice: str) -> TimingWarning:
    return TimingWarning("nothing-ran", message, advice)
