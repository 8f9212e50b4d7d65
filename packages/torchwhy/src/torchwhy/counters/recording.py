"""What only `torch.profiler` sees: launches on the device, calls that Python itself made, compiled regions.

Recording costs about a millisecond per count and some microseconds per call. A process can have one recording at a
time: nested counts share it, and it is cut where a count begins or ends.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from torchwhy.trace.meaning.compiler import COMPILING, REGION, compile_id
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, DISPATCHED
from torchwhy.trace.meaning.runtime import ANY_CALL, LAUNCH

__all__ = [
    "ProfilerRecording",
    "Region",
    "TraceSum",
    "Traced",
    "claim_recording",
    "is_launch",
    "is_operator",
    "nested_regions",
    "read",
    "trace_into",
]

Region = tuple[int, int]  # the compiled function, and which of its compilations

_thread = threading.local()
_claim = threading.Lock()  # held by the one thread that records


@dataclass(frozen=True)
class Traced:
    """The contents of a recording.

    Args:
        dispatches: operators called by no other operator, nor by the autograd engine, nor while compiling.
        kernel_launches: launch calls of the device's runtime or driver.
        nested: the compiled regions that ran inside another one, as code after a graph break does.
    """

    dispatches: int = 0
    kernel_launches: int = 0
    nested: tuple[Region, ...] = ()


class ProfilerRecording:
    """A `torch.profiler` recording of this thread, with the device's activity where a device is in use."""

    def __init__(self) -> None:
        """Prepare; `start` begins."""
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(activities=activities)

    @staticmethod
    def is_possible() -> bool:
        """Return whether no other profiler runs in this thread."""
        return not torch._C._autograd._profiler_enabled()

    def start(self) -> None:
        """Begin to record."""
        self._profile.start()

    def stop(self) -> Traced:
        """End, and return what was recorded."""
        self._profile.stop()
        results: Any = self._profile.profiler.kineto_results if self._profile.profiler else None
        if results is None:
            return Traced()
        return read(results.experimental_event_tree(), (event.name() for event in results.events()))


@dataclass
class TraceSum:
    """The sum of the pieces of one count's recording."""

    total: Traced = field(default_factory=Traced)

    def add(self, piece: Traced) -> None:
        """Add one piece."""
        self.total = Traced(
            self.total.dispatches + piece.dispatches,
            self.total.kernel_launches + piece.kernel_launches,
            tuple(sorted({*self.total.nested, *piece.nested})),
        )


def claim_recording() -> bool:
    """Return whether this thread may record now, and keep the others from it: two at a time crash PyTorch's own."""
    return bool(_sums()) or (ProfilerRecording.is_possible() and _claim.acquire(blocking=False))


@contextmanager
def trace_into(result: TraceSum) -> Iterator[None]:
    """Record this thread, which has claimed it, into `result`, and go on recording into the counts around it."""
    _cut()
    _thread.sums = [*_sums(), result]
    try:
        _begin()
        yield
    finally:
        _cut()
        _thread.sums = _sums()[:-1]
        if _sums():
            _begin()
        else:
            _claim.release()


def _sums() -> list[TraceSum]:
    return getattr(_thread, "sums", [])


def _begin() -> None:
    recording = ProfilerRecording()
    recording.start()
    _thread.recording = recording


def _cut() -> None:
    """End the recording, if there is one, and give what it held to every count under way."""
    recording: ProfilerRecording | None = getattr(_thread, "recording", None)
    if recording is None:
        return
    _thread.recording = None
    piece = recording.stop()
    for result in _sums():
        result.add(piece)


def read(tree: Iterable[Any], names: Iterable[str]) -> Traced:
    """Count in the tree of calls and in the names of all events."""
    roots, times = list(tree), Counter(names)
    # A graph compiled while its first call is under way runs operators on tensors without values: not the program's.
    dispatched = sum(1 for _ in _outermost(roots, is_operator, stop=_is_not_pythons))
    launches = sum(number for name, number in times.items() if is_launch(name))
    compiled = any(REGION.names(name) for name in times)
    return Traced(dispatched, launches, tuple(sorted(nested_regions(roots))) if compiled else ())


def nested_regions(roots: Iterable[Any]) -> set[Region]:
    """Return the compiled regions that ran inside another one."""
    regions = _outermost(roots, _is_region)
    names = (name for region in regions for name in _names_below(region.children))
    return {compile_id(name) for name in names if REGION.names(name)}


def is_launch(name: str) -> bool:
    """Return whether an event of this name is a call that launches work on a device, not the work."""
    return ANY_CALL.names(name) and LAUNCH.names(name)


def is_operator(call: Any) -> bool:
    """Return whether a call is one of an operator, not a range that the program or PyTorch named."""
    return DISPATCHED.names(call.name) and "USER_SCOPE" not in str(getattr(call.extra_fields, "scope", ""))


def _is_not_pythons(call: Any) -> bool:
    """Whether autograd or the compiler makes the calls below it."""
    return AUTOGRAD_NODE.names(call.name) or COMPILING.names(call.name)


def _is_region(call: Any) -> bool:
    return REGION.names(call.name)


def _outermost(
    roots: Iterable[Any], wanted: Callable[[Any], bool], stop: Callable[[Any], bool] = lambda call: False
) -> Iterator[Any]:
    """Yield wanted calls that no other wanted call made, from nowhere below a call to stop at."""
    pending = list(roots)
    while pending:  # a list, not recursion: call trees may be deeper than Python's stack
        call = pending.pop()
        if wanted(call):
            yield call
        elif not stop(call):
            pending.extend(call.children)


def _names_below(calls: Iterable[Any]) -> Iterator[str]:
    pending = list(calls)
    while pending:
        call = pending.pop()
        yield call.name
        pending.extend(call.children)
