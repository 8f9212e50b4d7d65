"""`count` and `counted`: count around a block or a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import MethodType, TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from torchwhy.counters.accumulator import Tally
from torchwhy.counters.compiler import Compiled, CompilerMark, breaks_in, known_compilations, note_on_uncompiled
from torchwhy.counters.counts import CopyTotal, Counts, Sync
from torchwhy.counters.dispatch_mode import OperatorMode
from torchwhy.counters.environment import environment
from torchwhy.counters.program_line import Line, line_text
from torchwhy.counters.recording import Traced, TraceSum, claim_recording, trace_into
from torchwhy.counters.synchronizations import watch_waits
from torchwhy.errors import ArgumentTypeError, TorchWhyError

__all__ = ["Counted", "Counting", "count", "counted"]

P = ParamSpec("P")
R = TypeVar("R")


class Counting:
    """A running count; its numbers are also attributes of this object."""

    def __init__(self, trace: bool | None = None) -> None:
        """Prepare the count; entering the block starts it."""
        self._wish = trace
        self._tally = Tally()
        self._trace: TraceSum | None = None
        self._stack = ExitStack()
        self._mark: CompilerMark | None = None
        self._counts: Counts | None = None

    def __enter__(self) -> Counting:
        """Start counting."""
        if self._mark is not None:
            raise TorchWhyError("this count has been used; every `with` needs its own torchwhy.count()")
        self._mark = CompilerMark()
        with ExitStack() as stack:
            if self._wants_trace() and claim_recording():
                self._trace = TraceSum()
                stack.enter_context(trace_into(self._trace))
            stack.enter_context(watch_waits(self._tally))
            stack.enter_context(OperatorMode(self._tally))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop counting; an exception of the block propagates."""
        self._stack.__exit__(kind, error, traceback)
        self._counts = self.counts

    @property
    def counts(self) -> Counts:
        """The numbers as frozen data; inside the block, the numbers so far, without those from a trace."""
        if self._counts is not None:
            return self._counts
        if self._mark is None:
            raise TorchWhyError("nothing is counted yet: use `with torchwhy.count() as c:`")
        return _frozen(self._tally, self._mark, self._trace.total if self._trace else None, self._wish)

    def _wants_trace(self) -> bool:
        import torch

        return torch.cuda.is_initialized() if self._wish is None else self._wish

    def __getattr__(self, name: str) -> Any:
        """Return a field or method of `Counts`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.counts, name)

    def __getitem__(self, name: str) -> int | None:
        """Return one metric or the calls of one operator."""
        return self.counts[name]

    def __str__(self) -> str:
        """Return the table."""
        return str(self.counts) if self._mark else "a count that has not begun"

    __repr__ = __str__


class Counted(Generic[P, R]):
    """A function with the `Counts` of its latest call in `.counts`."""

    def __init__(self, function: Callable[P, R], trace: bool | None) -> None:
        """Wrap `function`."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            name = getattr(function, "__name__", function)
            raise ArgumentTypeError(f"{name} returns before its work is done; count inside it, with torchwhy.count()")
        functools.update_wrapper(self, function)
        self._function = function
        self._trace = trace
        self.counts: Counts | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call and count."""
        counting = count(trace=self._trace)
        try:
            with counting:
                return self._function(*args, **kwargs)
        finally:
            self.counts = counting.counts

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, as functions do."""
        return self if instance is None else MethodType(self, instance)


def count(*, trace: bool | None = None) -> Counting:
    """Count the operations of a block: operators, waits, copies, allocations, graph breaks, recompilations.

    Counts can be nested; each includes everything inside its block. Work of other threads is not counted, except the
    backward pass of this thread. Compiled code runs compiled, so the contents of a fused kernel are not operator calls.
    Counting adds about 6 us to each operator call, 30 us with a trace (benchmark/count_overhead.py), so do not measure
    times inside the block.

    Args:
        trace: also record with `torch.profiler`, for `dispatches`, `kernel_launches` and breaks in code compiled
            earlier. None does so if CUDA is in use. PyTorch allows one profiler at a time: use False if the block uses
            a profiler.

    >>> import torch
    >>> a, b = torch.ones(2, 2), torch.ones(2, 2)
    >>> with count() as c:
    ...     _ = (a @ b).relu()
    >>> c.operators, c["allocated_bytes"]
    ({'aten::mm': 1, 'aten::relu': 1}, 32)
    """
    return Counting(trace)


@overload
def counted(function: Callable[P, R], /) -> Counted[P, R]: ...
@overload
def counted(*, trace: bool | None = None) -> Callable[[Callable[P, R]], Counted[P, R]]: ...
def counted(function: Callable[..., Any] | None = None, /, *, trace: bool | None = None) -> Any:
    """Count every call of a function; `.counts` has the counts of the latest call.

    >>> import torch
    >>> @counted
    ... def double(x):
    ...     return x + x
    >>> _ = double(torch.ones(3))
    >>> double.counts["operators"]
    1
    """
    if function is None:
        return lambda function: Counted(function, trace)
    return Counted(function, trace)


def _frozen(tally: Tally, mark: CompilerMark, traced: Traced | None, wish: bool | None) -> Counts:
    """Return what was counted; `traced` is None where nothing was recorded, `wish` what the caller requested."""
    compiled = mark.since()
    import torch

    uses_device = torch.cuda.is_initialized()
    return Counts(
        operators=dict(tally.operators),
        lines=_by_operator(tally.lines),
        native_calls=dict(tally.native),
        syncs=tuple(Sync(operator, line_text(line), times) for (operator, line), times in tally.syncs.items()),
        copies={kind: CopyTotal(times, tally.copied_bytes[kind]) for kind, times in tally.copies.items()},
        allocations=tally.allocations,
        allocated_bytes=tally.allocated_bytes,
        flops=dict(tally.flops),
        compilations=len(compiled.frames),
        compiled_before=known_compilations() - len(compiled.frames),
        graph_breaks=(*compiled.graph_breaks, *breaks_in(traced.nested if traced else (), compiled.frames)),
        recompiles=compiled.recompiles,
        kernel_launches=traced.kernel_launches if traced else None if uses_device else 0,
        dispatches=traced.dispatches if traced else None,
        notes=tuple(_notes(mark, compiled, traced, wish, uses_device)),
        environment=environment(),
    )


def _by_operator(times: Mapping[tuple[str, Line], int]) -> dict[str, dict[str, int]]:
    lines: dict[str, dict[str, int]] = {}
    for (operator, line), number in times.items():
        lines.setdefault(operator, {})[line_text(line)] = number
    return lines


def _notes(
    mark: CompilerMark, compiled: Compiled, traced: Traced | None, wish: bool | None, uses_device: bool
) -> Iterator[str]:
    if traced is None and wish:
        yield "dispatches and launches are not counted: another profiler, or another thread's count, is recording"
    elif traced is None and uses_device:
        yield "kernel launches are not counted without a trace: count(trace=True)"
    if mark.earlier and not compiled.frames and traced is None:
        met = f"{mark.earlier} earlier in this process"
        yield f"graph_breaks are met while compiling, {met}; count(trace=True) sees them"
    yield from note_on_uncompiled(compiled.frames)
