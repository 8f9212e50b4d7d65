"""Facts that only the contents of tensors prove, examined for some steps: repeated computations, and slow numbers.

Equal shapes do not prove that an operator computes something again, and neither do equal addresses: freed memory comes
back with other contents, and NumPy writes to a tensor's memory without PyTorch. So the bytes of all inputs are
compared, by hashes of 64 bits (Python's, SipHash). They are taken before the operator runs, in the thread that runs it.
After it has run, `trials` looks at the numbers.
"""

from __future__ import annotations

import json
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import torch

from torchwhy.capture.containment import is_programs
from torchwhy.capture.open_calls import inside_transform
from torchwhy.capture.stack_samples import DEEPEST, name_places
from torchwhy.capture.tensor_memory import UnlikeError, memory_of, on_processor, pieces_of
from torchwhy.capture.trials import Trial, Trials
from torchwhy.counters.compiler import known_compilations
from torchwhy.counters.dispatch_mode import WatchingMode
from torchwhy.trace.meaning.arithmetic import FACTORISATION, TRIANGULAR_SOLVE
from torchwhy.trace.meaning.frames import LAUNCHER
from torchwhy.trace.meaning.operators import COPIES_OR_FILLS

__all__ = ["Contents", "ContentsWatch", "Site", "may_watch"]

STEPS: Final = 32
"""At most this number of steps is watched."""

COST_NS: Final = 500_000_000
"""The watch may take at most this time itself (ns); then it ends."""

SECONDS: Final = 60.0
"""The watch lasts at most this time."""

SMALL: Final = 1 << 14
"""Inputs with at most this number of bytes together are always hashed whole."""

HASHED_PER_NS: Final = 2.0
"""Bytes per nanosecond; measured."""

BYTES_PER_NS: Final = HASHED_PER_NS / 4
"""Inputs are hashed whole if that takes a quarter of the operator's time or less."""

MOST_BYTES: Final = 1 << 28
"""Larger inputs are never hashed whole."""

DEAR: Final = 0.3
"""Other inputs may take this part of the time together: they are many where a costly operator is among cheap ones."""

TRIED: Final = 0.5
"""This part of the time may be taken by trials."""

MOST_SITES: Final = 20_000
"""The watch ends where a program has more."""

_SCALARS: Final = (
    type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format
)  # fmt: skip
_PACKAGE: Final = f"torchwhy{os.sep}capture{os.sep}"
_OPTIMIZERS: Final = f"{os.sep}torch{os.sep}optim{os.sep}"


@dataclass
class Site:
    """An operator and the Python stack in which it is called.

    Attributes:
        operator: such as "aten::mm".
        stack: its place in `Contents.stacks`; -1 for the calls of backward passes and optimizers, which aren't judged.
        judged: calls that were compared with all earlier ones, from the first repetition on if there was one.
        again: those that had the inputs of an earlier call, and the same sample of its result.
        time_us: how long these took.
        values: how many different inputs they had.
        in_a_row: how many of them had inputs that a call in the same step or the step before had, too.
        earlier: the stack of the first call with these inputs, where that is another one in the same step, in most
            cases; else -1.
        shapes: of each list of the inputs' shapes the text, the calls, and those that were repetitions.
    """

    operator: str
    stack: int
    judged: int = 0
    again: int = 0
    time_us: float = 0.0
    values: int = 0
    in_a_row: int = 0
    earlier: int = -1
    shapes: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class Contents:
    """The sites of the operators that ran during a watch.

    Attributes:
        steps: how many steps; 0 in a program without.
        cost_s: how many seconds of the processor's time that took.
        times_ns: when it began and ended, nanoseconds since 1970.
        frames, lines, stacks: see `StackSamples`.
        sites: of all operators that compute something.
        trials: of those that take long.
    """

    steps: int
    cost_s: float
    times_ns: tuple[int, int]
    frames: list[str]
    lines: list[str]
    stacks: list[list[int]]
    sites: list[Site]
    trials: list[Trial]


def may_watch() -> bool:
    """Whether a watch may begin here: only where operators run one by one on the processor, without another mode."""
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return not (
        torch.cuda.is_initialized()
        or torch.xpu.is_initialized()
        or distributed
        or known_compilations()
        or torch._C._len_torch_dispatch_stack()
        or inside_transform()
    )


class _Call:
    """One call of an operator that is open."""

    __slots__ = ("key", "shapes", "site", "unknown")

    def __init__(self, site: _Seen, shapes: tuple[Any, ...], key: Any, unknown: bool) -> None:
        self.site, self.shapes, self.key, self.unknown = site, shapes, key, unknown


@dataclass
class _Seen:
    """A site while it is watched; `suspected`: a sample of its inputs was seen before."""

    operator: str
    stack: int
    calls: int = 0
    spent_ns: int = 0
    judged: int = 0
    again: int = 0
    again_ns: int = 0
    suspected: bool = False
    values: set[Any] = field(default_factory=set)
    in_a_row: int = 0
    earlier: Counter[int] = field(default_factory=Counter)
    shapes: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)


class ContentsWatch(WatchingMode):
    """Watches the operators of this thread from `begin` to `end`.

    It never changes what an operator computes. Any trouble ends it.

    Attributes:
        over: whether nothing more is watched.
        trouble: the error that ended the watch.
    """

    def __init__(self, cost_ns: int = COST_NS, has_steps: bool = True) -> None:
        """Begin nothing yet.

        Args:
            cost_ns: how long it may take by itself.
            has_steps: whether `step` is called. Otherwise a step begins wherever the first operator is called again.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.over = False
        self.trouble: Exception | None = None
        self._cost_ns = cost_ns
        self._process = os.getpid()
        self._entered = self._inference = False
        self._began = self._ended = 0
        self._spent = self._dear_ns = 0
        self._trials = Trials(int(TRIED * cost_ns))
        self._has_steps = has_steps
        self._first: _Seen | None = None  # the site that was seen first
        self._step = self._compiled = 0
        self._sites: dict[tuple[Any, int], _Seen] = {}
        self._stacks: dict[tuple[tuple[CodeType, int], ...], int] = {}
        self._sampled: dict[Any, tuple[_Seen, bool]] = {}  # and whether the last such inputs were hashed whole
        self._computed: dict[Any, tuple[_Seen, int, Any]] = {}  # the first call, its step and results
        self._last: dict[Any, int] = {}  # step with these inputs
        self._deadline = 0  # of `time.perf_counter_ns`

    def begin(self) -> None:
        """Watch from here on."""
        self._began = time.time_ns()
        self._compiled = known_compilations()
        self._deadline = time.perf_counter_ns() + int(SECONDS * 1e9)
        self._entered, self._inference = True, torch.is_inference_mode_enabled()
        _leave_in_children(self)
        self.__enter__()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """A step has ended."""
        if not self.over:
            self._step += 1
            self.over = self._step >= STEPS or known_compilations() > self._compiled

    def end(self) -> bool:
        """Watch no more; return whether that was possible.

        It is not while the program has another mode open, nor in `inference_mode` if the watch began outside. The end
        of `inference_mode` brings back the thread's state before it: operators would be sent to a mode that is gone.
        """
        self._ended = self._ended or time.time_ns()
        self.over = True
        alike = torch.is_inference_mode_enabled() == self._inference
        depth = torch._C._len_torch_dispatch_stack() if self._entered and alike else 0
        if self._entered and depth and torch._C._get_dispatch_stack_at(depth - 1) is self:
            self.__exit__(None, None, None)
            self._entered = False
            self._sampled.clear()
            self._computed.clear()
            self._last.clear()
        return not self._entered

    def result(self) -> Contents:
        """Return what was seen."""
        frames, lines, stacks = name_places(list(self._stacks))
        sites = [_site(seen) for seen in self._sites.values()]
        cost_s = (self._spent + self._trials.spent_ns) / 1e9
        times = self._began, self._ended
        steps = self._step if self._has_steps else 0
        return Contents(steps, cost_s, times, frames, lines, stacks, sites, self._trials.results())

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, compare its inputs with its earlier calls, and look at its numbers."""
        kwargs = kwargs or {}
        if self.over or os.getpid() != self._process:
            return func(*args, **kwargs)
        began = time.thread_time_ns()  # other programs may hold the processor
        call = seeded = None
        try:
            call = self._before(func, args, kwargs)
            seeded = _random_state() if call is not None and _facts(func).seeded else None
        except UnlikeError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the program must not meet it
            self._end_for(error)
        called = time.thread_time_ns()
        spent = called - began
        ran = time.perf_counter_ns()
        result = func(*args, **kwargs)
        ended = time.perf_counter_ns()
        began = time.thread_time_ns()
        busy = began - called
        try:
            if call is not None:
                drew = seeded is not None and seeded != _random_state()
                self._after(call, result, drew, ended - ran)
        except UnlikeError:
            pass
        except Exception as error:  # noqa: BLE001 - as above
            self._end_for(error)
        self._spent += spent + time.thread_time_ns() - began
        try:
            if call is not None and _facts(func).may_rerun and not self.over:
                place = call.site.operator, call.site.stack, call.shapes
                self._trials.look(func, place, self._step, args, kwargs, result, ended - ran, busy)
        except Exception as error:  # noqa: BLE001 - as above
            self._end_for(error)
        spent = self._spent + self._trials.spent_ns
        self.over |= spent > self._cost_ns or ended > self._deadline or len(self._sites) > MOST_SITES
        return result

    def _end_for(self, error: Exception) -> None:
        if is_programs(error):
            raise error
        self.over, self.trouble = True, error

    def _before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        facts = _facts(func)
        if not facts.judged:
            return None
        tensors: list[torch.Tensor] = []
        what = (func, _described(args, tensors), _described(tuple(kwargs.values()), tensors), tuple(kwargs))
        if not tensors:
            return None
        shapes = tuple(() if i in facts.unnoted else _shape(value) for i, value in enumerate(args))
        stack = -1 if torch._C._current_graph_task_id() != -1 else self._stack()
        site = self._sites.setdefault((func, stack), _Seen(facts.name, stack))
        if stack < 0:
            return _Call(site, shapes, None, unknown=True)
        if not self._has_steps:
            self._first = self._first or site
            self._step += self._first is site
        memory = [memory_of(one) for one in tensors]
        size = sum(map(len, memory))
        sampled = what, tuple(map(_sample, memory))
        before = self._sampled.get(sampled)
        if before is not None:
            site.suspected = before[0].suspected = True
        whole = size <= SMALL or facts.cubic or size <= BYTES_PER_NS * site.spent_ns / max(site.calls, 1)
        if not whole and site.suspected and self._dear_ns < DEAR * self._cost_ns:
            whole = True
            self._dear_ns += int(size / HASHED_PER_NS)
        whole = whole and size <= MOST_BYTES
        self._sampled[sampled] = site, whole
        key = (what, tuple(map(hash, memory))) if whole else None
        # Where only samples are equal, or what they are equal to was not hashed, nothing is known.
        return _Call(site, shapes, key, unknown=before is not None and not (whole and before[1]))

    def _after(self, call: _Call, result: Any, drew: bool, took_ns: int) -> None:
        site = call.site
        site.calls += 1
        site.spent_ns += took_ns
        counts = site.shapes.setdefault(call.shapes, [0, 0])
        counts[0] += 1
        again = False
        if call.key is not None and not drew:
            made = _made(result)
            first = self._computed.get(call.key)
            again = first is not None and first[2] == made
            if first is None or not again:
                self._computed[call.key] = site, self._step, made
            elif first[0].stack != site.stack and first[1] == self._step:
                site.earlier[first[0].stack] += 1
            if again:
                if not site.again:
                    site.judged = 0
                site.again += 1
                site.again_ns += took_ns
                site.values.add(call.key)
                site.in_a_row += self._step - self._last[call.key] <= 1
                counts[1] += 1
            self._last[call.key] = self._step
        site.judged += again or not call.unknown

    def _stack(self) -> int:
        """The number of the Python stack that runs now; -1 within an optimizer."""
        places: list[tuple[CodeType, int]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(places) < DEEPEST:
            code = frame.f_code
            role = _role(code)
            if role == "end":
                break
            if not role:
                places.append((code, frame.f_lineno or code.co_firstlineno))
            elif role == "optimizer":
                return -1
            frame = frame.f_back
        return self._stacks.setdefault(tuple(places), len(self._stacks))


def _site(seen: _Seen) -> Site:
    """A site as it is written."""
    first, times = seen.earlier.most_common(1)[0] if seen.earlier else (-1, 0)
    shapes = [(json.dumps(one), calls, again) for one, (calls, again) in seen.shapes.items()]
    return Site(
        seen.operator,
        seen.stack,
        seen.judged,
        seen.again,
        seen.again_ns / 1000,
        len(seen.values),
        seen.in_a_row,
        first if 2 * times > seen.again else -1,
        shapes,
    )


@dataclass(frozen=True)
class _Facts:
    """Facts about an operator.

    Attributes:
        name: such as "aten::mm".
        judged: whether calls of it are compared.
        seeded: whether it may draw random numbers.
        may_rerun: whether a second call changes nothing.
        cubic: whether it takes far longer than its inputs take to hash.
        unnoted: the arguments whose shapes a trace leaves out.
    """

    name: str
    judged: bool
    seeded: bool
    may_rerun: bool = False
    cubic: bool = False
    unnoted: frozenset[int] = frozenset()


@cache
def _facts(func: Any) -> _Facts:
    """Facts about an operator. Others than PyTorch's own may do anything, and may run Python."""
    if not isinstance(func, torch._ops.OpOverload) or func.namespace != "aten":
        return _Facts("", False, False)
    schema = func._schema
    view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
    judged = not view and not COPIES_OR_FILLS.names(schema.name)
    unnoted = (i for i, one in enumerate(schema.arguments) if str(one.type) == "List[Optional[Tensor]]")
    seeded = torch.Tag.nondeterministic_seeded in func.tags
    may_rerun = judged and not seeded and not schema.is_mutable
    called = schema.name.replace("::_", "::").removesuffix("_ex")
    cubic = (FACTORISATION | TRIANGULAR_SOLVE).names(called)
    return _Facts(schema.name, judged, seeded, may_rerun, cubic, frozenset(unnoted))


@cache
def _role(code: CodeType) -> str:
    """Whether a stack ends at a function ("end"), leaves it out ("ours"), or isn't judged ("optimizer")."""
    file = code.co_filename
    if Path(LAUNCHER).as_posix() in Path(file).as_posix():
        return "end"
    if _PACKAGE in file:
        return "ours"
    return "optimizer" if _OPTIMIZERS in file and code.co_name != "__init__" else ""


def _described(values: Sequence[Any], tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    """All of the arguments but the contents of tensors, which are added to the list."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if not on_processor(value):
                raise UnlikeError
            tensors.append(value)
            found.append((value.dtype, tuple(value.shape), value.stride(), value.is_conj(), value.is_neg()))
        elif isinstance(value, (list, tuple)):
            found.append((type(value).__name__, _described(value, tensors)))
        elif type(value) in _SCALARS:
            found.append(repr(value))  # 1, 1.0 and True are equal, and so are 0.0 and -0.0
        else:
            raise UnlikeError
    return tuple(found)


def _shape(value: Any) -> tuple[Any, ...]:
    """The shape of an argument as a trace has it."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
        return tuple(map(_shape, value))
    return ()


def _sample(memory: memoryview) -> int:
    return hash(pieces_of(memory))


def _made(result: Any) -> tuple[Any, ...]:
    """A sample of an operator's results: equal inputs with other results aren't all that it depends on."""
    tensors: list[torch.Tensor] = []
    what = _described(result if isinstance(result, (list, tuple)) else (result,), tensors)
    return what, tuple(_sample(memory_of(one)) for one in tensors)


def _random_state() -> int:
    """A hash of the state of the processor's generator: whoever draws from it changes that."""
    return hash(torch.default_generator.get_state().numpy().tobytes())


def _leave_in_children(watch: ContentsWatch) -> None:
    """See that processes that are forked meanwhile run without it."""
    if hasattr(os, "register_at_fork"):
        this = weakref.ref(watch)

        def leave() -> None:
            inherited = this()
            if inherited is not None:
                inherited.end()

        os.register_at_fork(after_in_child=leave)
