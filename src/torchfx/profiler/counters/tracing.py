"""Recordings shared by nested counts: a process can have one recording, so it is cut where a count begins or ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torchfx.profiler.counters.trace import Recording, Traced

__all__ = ["TraceSum", "claim_recording", "trace_into"]

_thread = threading.local()
_claim = threading.Lock()  # held by the one thread that records


@dataclass
class TraceSum:
    """What the pieces of one count's recording add up to."""

    total: Traced = field(default_factory=Traced)

    def add(self, piece: Traced) -> None:
        """Add one piece."""
        self.total = Traced(
            self.total.dispatches + piece.dispatches,
            self.total.kernel_launches + piece.kernel_launches,
            tuple(sorted({*self.total.resumed, *piece.resumed})),
        )


def claim_recording() -> bool:
    """Return whether this thread may record now, and keep the others from it: two at a time crash PyTorch's own."""
    return bool(_sums()) or (Recording.is_possible() and _claim.acquire(blocking=False))


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
    recording = Recording()
    recording.start()
    _thread.recording = recording


def _cut() -> None:
    """End the recording, if there is one, and give what it held to every count under way."""
    recording: Recording | None = getattr(_thread, "recording", None)
    if recording is None:
        return
    _thread.recording = None
    piece = recording.stop()
    for result in _sums():
        result.add(piece)
