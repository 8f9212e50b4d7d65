"""One trace, read: its events, and what belongs together among them. Everything is computed when first requested."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import numpy.typing as npt

from torchwhy.trace.compile_log.log import CompileLog
from torchwhy.trace.file.columns import Columns, Int32, Int64, Repairs
from torchwhy.trace.file.origin import NOWHERE, Origin
from torchwhy.trace.meaning.annotations import STEP, mark_of
from torchwhy.trace.meaning.frames import TORCHWHYS
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.model.captured import Captured, Coverage
from torchwhy.trace.model.device import DeviceWork, devices_of
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.exchange import exchanging_kernels
from torchwhy.trace.model.info import Info, read_info
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.lanes import Lane
from torchwhy.trace.model.links import Links
from torchwhy.trace.model.steps import Step, find_steps
from torchwhy.trace.model.tree import Tree
from torchwhy.trace.peaks import Peaks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Trace"]

T = TypeVar("T")


class Trace:
    """A recorded program. A "row" is the index of an event in the file; times are integer nanoseconds.

    Attributes:
        file: where it was read from.
        events: the columns.
        info: devices, rank, versions, flags.
        repairs: what was wrong with the file.
        size: bytes of the decompressed file.
        origin: the file as it was when it was read.
        part: the stretch of time that was requested where only one was, (start, end); or None.
        given_peaks: what its devices can do at most, where that was given; None: from their data sheets. Set it before
            anything is computed from it.
        compile_log: what the compiler noted while the program ran, where that was recorded; set before anything is
            computed, too.
    """

    def __init__(
        self,
        file: str,
        columns: Columns,
        origin: Origin = NOWHERE,
        *,
        beginning: int | None = None,
        part: tuple[int, int] | None = None,
        captured: Captured | None = None,
    ) -> None:
        self.file = file
        self.origin = origin
        self.part = part
        self.given_peaks: Peaks | None = None
        self.compile_log: CompileLog | None = None
        self._beginning = beginning
        self.info: Info = read_info(columns.top)
        self.repairs: Repairs = columns.repairs
        self.size = columns.size
        self.events = Events(columns, captured)
        self._derived: dict[Callable[[Trace], object], object] = {}

    def __len__(self) -> int:
        return self.events.recorded

    def name(self, row: int) -> str:
        """The name of an event."""
        return self.events.named(row)

    def lane(self, row: int) -> Lane:
        """The thread or stream of an event."""
        return self.events.lanes[int(self.events.lane[row])]

    def derived(self, function: Callable[[Trace], T]) -> T:
        """Return `function(self)`, computed once: what several rules need of a trace."""
        if function not in self._derived:
            self._derived[function] = function(self)
        return cast("T", self._derived[function])

    @property
    def captured(self) -> Coverage | None:
        """How much of the work of replayed graphs is named, where recordings of their capture were given."""
        return self.events.captured.coverage if self.events.captured is not None else None

    # Host

    @cached_property
    def calls(self) -> Tree:
        """Operators, annotations and runtime calls, nested; Python frames are left out."""
        captured = self.events.captured
        kinds = (Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME)
        return Tree(self.events, *kinds, borrowed=captured.calls if captured is not None else None)

    @cached_property
    def frames(self) -> Tree:
        """The same with Python frames, where they were recorded.

        Steps are left out: a step may begin within a function, such as the `forward` of a model, and end after it. So
        are our own frames: what they call is the program's.
        """
        if not self.has_stacks:
            return self.calls
        borrowed = self.events.captured.frames if self.events.captured is not None else None
        return Tree(self.events, *HOST, without=STEP | TORCHWHYS, borrowed=borrowed)

    @cached_property
    def has_stacks(self) -> bool:
        """Whether Python frames were recorded."""
        return bool((self.events.kind == Kind.PYTHON).any())

    def stack(self, row: int) -> list[str]:
        """The Python frames around a host event, from the innermost; [] where none were recorded."""
        if self.has_stacks:
            kind = self.events.kind
            return [self.name(above) for above in self.frames.ancestors(row) if kind[above] == Kind.PYTHON]
        if not self.events.has("Call stack"):  # the 2021 format writes them as an argument
            return []
        text = self.events.text("Call stack", row) or self.events.text("Call stack", int(self._stack_told[row])) or ""
        return [frame.strip() for frame in text.split(";") if frame.strip()]

    @cached_property
    def _stack_told(self) -> Int32:
        """For each call the innermost one around it, itself included, that has its stack as an argument; or -1."""
        argument, wanted = self.events.arguments["Call stack"], np.zeros(len(self.events), np.bool_)
        wanted[argument.rows] = np.array([bool(text) for text in self.events.texts])[argument.values]
        return self.calls.nearest(wanted)

    def operator(self, row: int) -> int:
        """The innermost operator around a host event, itself included, or -1."""
        return self._nearest(row, Kind.OPERATOR)

    def annotation(self, row: int) -> int:
        """The innermost annotation around a host event other than a step, itself included, or -1."""
        for above in (row, *self.calls.ancestors(row)):
            if self.events.kind[above] == Kind.ANNOTATION and not STEP.names(self.name(above)):
                return above
        return -1

    def _nearest(self, row: int, kind: Kind) -> int:
        if row < 0:
            return -1
        return next((above for above in (row, *self.calls.ancestors(row)) if self.events.kind[above] == kind), -1)

    @cached_property
    def main_lane(self) -> int:
        """The thread that runs the program's loop: that of the steps, else the one with the most operators; or -1."""
        for step in self.steps_found:
            if step.lane >= 0:
                return step.lane
        rows = self.events.rows(Kind.OPERATOR, Kind.ANNOTATION)
        if not len(rows):
            rows = self.events.rows(Kind.RUNTIME)
        return int(np.bincount(self.events.lane[rows]).argmax()) if len(rows) else -1

    # Device

    @cached_property
    def links(self) -> Links:
        """Launches and what they put on the device."""
        return Links(self.events)

    @property
    def has_gpu(self) -> bool:
        """Whether any work on a device was recorded."""
        return len(self.links.work) > 0

    @cached_property
    def exchanging(self) -> Int32:
        """Kernels that exchange data between ranks."""
        return exchanging_kernels(self.events, self.links, self.calls, self.info)

    @cached_property
    def gpu(self) -> DeviceWork:
        """The work of all devices together."""
        return DeviceWork(-1, self.links.work, self.exchanging, self.events)

    @cached_property
    def gpus(self) -> tuple[DeviceWork, ...]:
        """The work of each device that had any, by its id."""
        work = self.links.work
        device = devices_of(self.events, work)
        return tuple(DeviceWork(int(i), work[device == i], self.exchanging, self.events) for i in np.unique(device))

    # Time

    @cached_property
    def steps_found(self) -> tuple[Step, ...]:
        """The rounds of the program's loop, recorded or inferred; see `Step.inferred`."""
        return find_steps(self.events, self.calls, self.links)

    @cached_property
    def span(self) -> tuple[int, int]:
        """From the first start to the last end of everything the program did, host and device; (0, 0) when empty."""
        rows = self.events.rows(*HOST, Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
        if not len(rows):
            return 0, 0
        return int(self.events.ts[rows].min()), int(self.events.end[rows].max())

    @property
    def beginning(self) -> int:
        """The first start of the whole trace, also where only a part was loaded: what tables count `start_us` from."""
        return self.span[0] if self._beginning is None else self._beginning

    @cached_property
    def window(self) -> Window:
        """The time rules speak about unless they say otherwise: the steps, until their device work ends; or all."""
        steps = self.steps_found
        if not steps and self.part is not None:
            start, end = ((moment - self.beginning) / 1000 for moment in self.part)
            return Window(f"{start:.0f} to {end:.0f} us of the trace", *self.part)
        if not steps:
            return Window("the whole trace", *self.span)
        first, last = steps[0].name, steps[-1].name
        name = f"{first} to {last}" if len(steps) > 1 else first
        if steps[0].inferred:
            mark, between = mark_of(first)
            name = f"{len(steps)} inferred steps ({f'from one {mark} to the next' if between else mark})"
        return Window(name, min(s.start for s in steps), max(s.device_end for s in steps))

    def when(self, rows: npt.ArrayLike) -> Intervals:
        """When at least one of these rows took place, within the window."""
        return self.events.times_of(rows).clip(self.window.start, self.window.end)

    def in_steps(self, rows: Int32) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each host event begins within a step; all of them do where there are no steps."""
        steps = self.steps_found
        if not steps:
            return np.ones(len(rows), np.bool_)
        return np.asarray(self.step_of(rows) >= 0)

    def step_of(self, rows: Int32) -> Int32:
        """The index of the step each host event begins in, or -1."""
        steps = self.steps_found
        if not steps:
            return np.full(len(rows), -1, np.int32)
        starts, ends = self._step_times
        i = np.searchsorted(starts, self.events.ts[rows], "right") - 1
        inside = (i >= 0) & (self.events.ts[rows] < ends[np.maximum(i, 0)])
        return np.where(inside, i, -1).astype(np.int32)

    @cached_property
    def _step_times(self) -> tuple[Int64, Int64]:
        steps = self.steps_found
        return np.array([step.start for step in steps], np.int64), np.array([step.end for step in steps], np.int64)

    def ancestors(self, row: int) -> Iterator[int]:
        """The calls around a host event, from the innermost, without Python frames."""
        return self.calls.ancestors(row)
