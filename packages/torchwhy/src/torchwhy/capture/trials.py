"""Costly operators, examined and run again in another way: which numbers they read, and the time that this saves.

Whether arithmetic is slow for subnormal numbers, or wasted on zeros, no trace shows, and no share of such numbers says
how much time that takes on this processor. So the operator is run again, right after the program's own call and with
the same arguments: as it is and with subnormal numbers flushed to zero, or with its matrix in a sparse layout. Only
operators that write nothing and draw no random numbers are run again; their results are dropped.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from torchwhy.capture.tensor_memory import UnlikeError, memory_of, on_processor, pieces_of

__all__ = ["Trial", "Trials"]

COSTLY_NS: Final = 50_000
"""Calls of an operator that take less are not examined, which takes some 50 us."""

FIRST: Final = 16
EVERY: Final = 7
"""The first 16 calls of a site are examined, then each seventh: layers share a line, seldom seven of them."""

LOOKS: Final = 64
"""At most this number of calls of a site is examined."""

SUBNORMAL: Final = 0.01
"""From this part of a sample of subnormal numbers on, a call is tried without them."""

FLOOR: Final = {torch.float32: 1e-30, torch.float64: 1e-290}
"""Numbers from which on products with ordinary ones are normal."""

ZEROS: Final = 0.95
"""A matrix with a smaller part of zeros is not tried as a sparse one. A sparse product was measured to take 0.1 to 0.46
of a dense one's time at 95% (512 to 2000 rows, 8 to 256 columns, one thread), and longer than that at 80%.
"""

LARGE: Final = 1 << 18
"""Neither is one with fewer numbers."""

BLOCK: Final = 1 << 21
"""At most this number of a matrix's numbers is tried, in whole rows."""

MOST_BYTES: Final = 1 << 28
"""An operator with a larger result is not run again."""

RUNS: Final = 8
"""A site is tried so often without subnormal numbers, at most."""

FIRST_RUNS: Final = 3
"""The first three looks at subnormal numbers are followed by a run, then each third: such numbers become more."""

PRODUCTS: Final = 3
"""It is tried so often with a sparse matrix."""

MOST_SITES: Final = 500


@dataclass
class Trial:
    """The numbers of an operator, and how long it took in another way; times are the processor's.

    Attributes:
        operator, stack: as in `Site`; stack is -1 in backward passes and optimizers.
        shapes: of the inputs, as text.
        looks: how many calls were examined.
        subnormal: in how many of them 1% or more of a sample of an input or of a result was subnormal.
        all_us: how much of the thread's time all calls took for as long as some were examined.
        subnormal_us, subnormal_calls: of these, those with subnormal numbers; one that was examined stands for those
            that were not since the one before.
        undefined: in how many of them all of a result's sample was NaN.
        weights: in how many of these a parameter's sample was, too.
        steps: in how many steps the result was so.
        reruns: how often it was run again in three ways: as it is, with subnormal numbers flushed to zero, and with
            inputs that are no smaller than `FLOOR`.
        faster: how often it took two thirds of the time or less in one of the other ways.
        plain_us, flushed_us, floored_us: how long these runs took together.
        zeros: the smallest part of zeros that was counted in its largest matrix of zeros, 0 to 1; 0 if not counted.
        matrix: the shape of that matrix.
        changing: whether that matrix changed from call to call.
        products: how often the product was tried with a sparse matrix.
        dense_us, sparse_us: how long these took together, with as many rows of the matrix.
        layout_us: how long it took to make the matrix sparse.
    """

    operator: str
    stack: int
    shapes: str
    looks: int = 0
    subnormal: int = 0
    undefined: int = 0
    weights: int = 0
    steps: int = 0
    reruns: int = 0
    faster: int = 0
    plain_us: float = 0.0
    flushed_us: float = 0.0
    floored_us: float = 0.0
    zeros: float = 0.0
    matrix: list[int] = field(default_factory=list)
    changing: bool = False
    products: int = 0
    dense_us: float = 0.0
    sparse_us: float = 0.0
    layout_us: float = 0.0
    all_us: float = 0.0
    subnormal_us: float = 0.0
    subnormal_calls: int = 0


class _Numbers(NamedTuple):
    """Parts of a sample of numbers, 0 to 1."""

    subnormal: float
    undefined: float
    zeros: float


@dataclass
class _Site:
    trial: Trial
    calls: int = 0
    undefined_in: int = -1  # the last step
    matrix: tuple[int, int] | None = None  # its address, and how many of its numbers aren't 0
    dense: bool = False  # whether no matrix of it is mostly zeros, or it can't be tried


class Trials:
    """Looks at the calls of operators, and tries some of them in other ways.

    Attributes:
        spent_ns: how much of the processor's time that took.
    """

    def __init__(self, cost_ns: int) -> None:
        """Examine nothing yet.

        Args:
            cost_ns: how much time it may take; what would take more is not tried.
        """
        self.spent_ns = 0
        self._cost_ns = cost_ns
        self._sites: dict[tuple[Any, int, tuple[Any, ...]], _Site] = {}
        self._cheap_us: dict[tuple[Any, int, tuple[Any, ...]], float] = {}  # of sites without a costly call so far

    def results(self) -> list[Trial]:
        """Return the trial of each site that was examined."""
        return [site.trial for site in self._sites.values()]

    def look(
        self, func: Any, place: tuple[str, int, tuple[Any, ...]], step: int, args: tuple[Any, ...],
        kwargs: dict[str, Any], result: Any, took_ns: int, busy_ns: int,
    ) -> None:  # fmt: skip
        """Examine a call that has just been made.

        Args:
            func: the operator, which writes nothing and draws no random numbers.
            place: its name, the number of the stack, and the inputs' shapes.
            step: the number of the step.
            args: of the call.
            kwargs: of the call.
            result: of the call.
            took_ns: how long it took.
            busy_ns: how much of this thread's time it took.
        """
        if self.spent_ns >= self._cost_ns or len(self._sites) >= MOST_SITES:
            return
        name, stack, shapes = place
        key = func, stack, shapes
        site = self._sites.get(key)
        if site is None and took_ns < COSTLY_NS:
            if len(self._cheap_us) < MOST_SITES:
                self._cheap_us[key] = self._cheap_us.get(key, 0.0) + busy_ns / 1000
            return
        if site is None:
            site = self._sites[key] = _Site(Trial(name, stack, json.dumps(shapes)))
            site.trial.all_us = self._cheap_us.pop(key, 0.0)
        if site.trial.looks >= LOOKS:
            return
        site.trial.all_us += busy_ns / 1000
        if took_ns < COSTLY_NS:
            return
        site.calls += 1
        if site.calls > FIRST and site.calls % EVERY:
            return
        subnormal = site.trial.subnormal
        began = time.process_time_ns()
        try:
            with torch.no_grad():
                self._look(site, func, step, args, kwargs, result, self.spent_ns + 3 * took_ns <= self._cost_ns)
        finally:
            self.spent_ns += time.process_time_ns() - began
        if site.trial.subnormal > subnormal:
            stands_for = EVERY if site.calls > FIRST else 1
            site.trial.subnormal_calls += stands_for
            site.trial.subnormal_us += stands_for * busy_ns / 1000

    def _look(
        self, site: _Site, func: Any, step: int, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any,
        may_rerun: bool,
    ) -> None:  # fmt: skip
        trial = site.trial
        given = [*_tensors(args), *_tensors(tuple(kwargs.values()))]
        made = [*_tensors(result if isinstance(result, (list, tuple)) else (result,))]
        inputs, results = [_numbers(one) for one in given], [_numbers(one) for one in made]
        known = [one for one in (*inputs, *results) if one is not None]
        if not known:
            return
        trial.looks += 1
        if results and results[0] is not None and results[0].undefined == 1:
            trial.undefined += 1
            trial.steps += site.undefined_in != step
            site.undefined_in = step
            trial.weights += any(
                one is not None and one.undefined == 1 and _is_parameter(tensor)
                for tensor, one in zip(given, inputs, strict=True)
            )
            return
        if sum(one.nbytes for one in made) > MOST_BYTES:
            return
        if max(one.subnormal for one in known) >= SUBNORMAL:
            trial.subnormal += 1
            due = trial.subnormal <= FIRST_RUNS or trial.subnormal % FIRST_RUNS == 0
            if may_rerun and trial.reruns < RUNS and due:
                _rerun(trial, func, args, kwargs)
        if func in _PRODUCTS and not site.dense and not kwargs and trial.products < PRODUCTS:
            site.dense = not _sparse(site, _PRODUCTS[func], args)


_PRODUCTS: Final = {torch.ops.aten.mm.default: 0, torch.ops.aten.addmm.default: 1, torch.ops.aten.matmul.default: 0}
"""Products of two matrices, and which of the arguments is the first matrix."""


def _sparse(site: _Site, first: int, args: tuple[Any, ...]) -> bool:
    """Try a product with a sparse matrix; return whether that was possible.

    Args:
        site: where it is.
        first: which of the arguments is the first matrix.
        args: of the call.
    """
    if any(not isinstance(one, torch.Tensor) or one.ndim != 2 for one in args[first : first + 2]):
        return False
    pairs = [(i, one) for i, one in enumerate(args[first : first + 2]) if one.numel() >= LARGE]
    pairs = [(i, one) for i, one in pairs if (seen := _numbers(one)) is not None and seen.zeros >= ZEROS]
    if len(pairs) != 1:
        return False
    which, matrix = pairs[0]
    trial = site.trial
    nonzero = int(torch.count_nonzero(matrix))
    zeros = 1 - nonzero / matrix.numel()
    if zeros < ZEROS:
        return False
    trial.zeros = min(zeros, trial.zeros or 1.0)
    trial.matrix = list(matrix.shape)
    now = matrix.data_ptr(), nonzero
    trial.changing |= site.matrix is not None and site.matrix != now
    site.matrix = now
    other = args[first + 1 - which]
    rows = max(min(BLOCK // matrix.shape[1 - which], matrix.shape[which]), 1)
    begin = (matrix.shape[which] - rows) // 2
    block = matrix.narrow(which, begin, rows)
    # A block with fewer numbers than usual would look faster than the whole.
    denser = max(1.0, nonzero / max(int(torch.count_nonzero(block)), 1) * rows / matrix.shape[which])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on sparse layouts, which the program does not use
            layout_ns, sparse = _timed(lambda: block.contiguous().to_sparse_csr())
            sparse_ns, product = _timed(lambda: sparse @ other if not which else other @ sparse)
        dense_ns, expected = _timed(lambda: block @ other if not which else other @ block)
        if not torch.allclose(product, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max())):
            return False
    except (RuntimeError, NotImplementedError):
        return False
    trial.products += 1
    trial.dense_us += dense_ns / 1000
    trial.sparse_us += denser * sparse_ns / 1000
    trial.layout_us += denser * layout_ns / 1000
    return True


def _rerun(trial: Trial, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run an operator again with subnormal numbers, flushed to zero, and with a floor.

    Not all operators follow the processor's mode: square roots, logarithms and exponentials may not.
    """
    if sys.float_info.min / 2 == 0 or not _set_flush(False):  # they are flushed already, or can't be
        return
    raised = _raised(args)
    plain_ns, _ = _timed(lambda: func(*args, **kwargs))
    floored_ns, _ = _timed(lambda: func(*raised, **kwargs))
    try:
        _set_flush(True)
        flushed_ns, _ = _timed(lambda: func(*args, **kwargs))
    finally:
        _set_flush(False)
    trial.reruns += 1
    trial.faster += 3 * min(flushed_ns, floored_ns) <= 2 * plain_ns
    trial.plain_us += plain_ns / 1000
    trial.flushed_us += flushed_ns / 1000
    trial.floored_us += floored_ns / 1000


def _raised(values: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with a floor under the size of their numbers."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor) and value.dtype in FLOOR:
            floor = torch.full((), FLOOR[value.dtype], dtype=value.dtype)
            found.append(torch.where(value.abs() < floor, floor, value))
        else:
            found.append([*_raised(value)] if isinstance(value, (list, tuple)) else value)
    return tuple(found)


_set_flush: Final[Callable[[bool], bool]] = torch.set_flush_denormal


def _timed(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return how much of this thread's time a call takes, nanoseconds, and its result."""
    began = time.thread_time_ns()
    result = call()
    return time.thread_time_ns() - began, result


def _is_parameter(tensor: torch.Tensor) -> bool:
    """Whether a tensor is something that is trained, or a view of it."""
    base = tensor if tensor._base is None else tensor._base
    return base.requires_grad and base.is_leaf


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


_BITS: Final[dict[torch.dtype, tuple[type[np.unsignedinteger[Any]], int, int]]] = {
    torch.float32: (np.uint32, 1 << 23, 0xFF << 23),
    torch.float64: (np.uint64, 1 << 52, 0x7FF << 52),
}
"""The type of integers for the bits of a number, the bits of the smallest normal number, and of infinity."""


def _numbers(tensor: torch.Tensor) -> _Numbers | None:
    """The parts of a sample of a tensor's numbers; None where its memory holds others between them."""
    if tensor.dtype not in _BITS or not tensor.numel() or not on_processor(tensor):
        return None
    try:
        memory = memory_of(tensor)
    except UnlikeError:
        return None
    if len(memory) != tensor.numel() * tensor.element_size():
        return None
    kind, normal, infinite = _BITS[tensor.dtype]
    bits = np.frombuffer(pieces_of(memory), kind)
    bits = bits & kind(infinite | (normal - 1))  # without the sign
    zero = bits == 0
    return _Numbers(float(((bits < normal) & ~zero).mean()), float((bits > infinite).mean()), float(zero.mean()))
