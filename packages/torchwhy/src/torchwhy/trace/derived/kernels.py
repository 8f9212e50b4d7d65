"""The kernels of a trace with their names read, and what they compute by the operator that launched them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.ownership import operators_of_work
from torchwhy.trace.file.columns import Flags, Int32, Int64, numbered_together
from torchwhy.trace.meaning.arithmetic import operation_of
from torchwhy.trace.meaning.kernels import OPERATIONS, KernelName, decode
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import PYTORCHS
from torchwhy.trace.meaning.programs import AUTOGRAD
from torchwhy.trace.model.trace import Trace

__all__ = ["KernelNames", "Kernels", "in_window", "kernel_names", "kernels_of"]


@dataclass(frozen=True)
class KernelNames:
    """Every kernel of a trace, by start.

    Attributes:
        rows: of the kernels.
        operator: the innermost operator that launched each, or -1.
        names: what is known of each distinct kernel.
        which: index into `names` per row.
    """

    rows: Int32
    operator: Int32
    names: tuple[KernelName, ...]
    which: Int64

    def that(self, accept: Callable[[KernelName], bool]) -> Flags:
        """Which of them have a name that means something."""
        chosen = np.array([accept(name) for name in self.names], np.bool_)
        found: Flags = chosen[self.which] if len(self.names) else np.zeros(0, np.bool_)
        return found

    def of(self, rows: npt.ArrayLike) -> list[KernelName]:
        """Return the names and kinds of some kernels."""
        at = self._place[np.searchsorted(self.rows[self._place], np.asarray(rows, np.int32))]
        return [self.names[i] for i in self.which[at].tolist()]

    def operators_of(self, rows: npt.ArrayLike) -> Int32:
        """The operator that launched each of some kernels, or -1."""
        at = self._place[np.searchsorted(self.rows[self._place], np.asarray(rows, np.int32))]
        found: Int32 = self.operator[at]
        return found

    @cached_property
    def _place(self) -> npt.NDArray[np.intp]:
        found: npt.NDArray[np.intp] = np.argsort(self.rows, kind="stable")
        return found


def kernel_names(trace: Trace) -> KernelNames:
    """Read the names of all kernels; `trace.derived(kernel_names)` does it once.

    Where only words in a kernel's name suggest what it computes, an operator of PyTorch that launched it decides; where
    nothing does, any operator. Whether it exchanges data between ranks, `Trace.exchanging` knows.
    """
    events, work = trace.events, trace.links.work
    at = np.flatnonzero(events.kind[work] == Kind.KERNEL)
    rows, operator = work[at], trace.derived(operators_of_work)[at]
    caller = np.where(operator >= 0, events.name[operator] if len(events) else operator, -1)
    exchanges = np.isin(rows, trace.exchanging)
    kinds, which = numbered_together(events.name[rows], caller, exchanges)
    names = [
        _read(*(events.texts[i] if i >= 0 else "" for i in pair), exchanges=bool(exchange))
        for *pair, exchange in kinds.T.tolist()
    ]
    distinct = {name: i for i, name in enumerate(dict.fromkeys(names))}
    number = np.array([distinct[name] for name in names], np.int64)
    return KernelNames(rows, operator, tuple(distinct), number[which] if len(names) else which)


@dataclass(frozen=True)
class Kernels:
    """Kernels that ran within the window, those that communicate left out: they also wait for other ranks.

    Attributes:
        rows: by start.
        spent: nanoseconds of each within the window.
        names: what each distinct name means.
        which: index into `names` per row.
        operator: the innermost operator that launched each, or -1.
    """

    rows: Int32
    spent: Int64
    names: tuple[KernelName, ...]
    which: Int64
    operator: Int32

    @cached_property
    def total(self) -> int:
        """Their durations together, nanoseconds."""
        return int(self.spent.sum())

    def that(self, accept: Callable[[KernelName], bool]) -> Flags:
        """Which of them have a name that means something."""
        chosen = np.array([accept(name) for name in self.names], np.bool_)
        found: Flags = chosen[self.which] if len(self.names) else np.zeros(0, np.bool_)
        return found

    def share(self, chosen: Flags) -> float:
        """The part of all kernels' time that some take."""
        return float(self.spent[chosen].sum()) / self.total if self.total else 0.0


def kernels_of(trace: Trace) -> Kernels:
    """Select them; `trace.derived(kernels_of)` does it once."""
    events, every = trace.events, trace.derived(kernel_names)
    chosen = in_window(trace, every.rows) & every.that(lambda name: name.operation != "communication")
    rows = every.rows[chosen]
    spent = np.minimum(events.end[rows], trace.window.end) - np.maximum(events.ts[rows], trace.window.start)
    return Kernels(rows, np.maximum(spent, 0), every.names, every.which[chosen], every.operator[chosen])


def in_window(trace: Trace, rows: Int32) -> Flags:
    """Whether device work ran within the window, at least in part."""
    events, window = trace.events, trace.window
    found: Flags = (events.ts[rows] < window.end) & (events.end[rows] > window.start)
    return found


def _read(kernel: str, operator: str, *, exchanges: bool) -> KernelName:
    name = decode(kernel)
    if exchanges and name.operation != "communication":
        return replace(name, operation="communication", description=OPERATIONS["communication"])
    if not name.guessed or not operator:
        return name
    operation = operation_of(operator)
    if not operation and not name.known and not (PYTORCHS | AUTOGRAD).names(operator):
        operation = decode(operator).operation
    if not operation or operation in (name.operation, "other"):
        return name
    return replace(name, operation=operation, description=OPERATIONS[operation])
