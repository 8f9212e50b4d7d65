"""A recording of everything, without steps: it ends when it is as much as can be kept and read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from torchwhy.capture.main_thread import after, bytes_of_all_arenas, whenever_memory_grows
from torchwhy.capture.open_calls import inside_pytorch
from torchwhy.capture.options import Options, can_record_all_threads
from torchwhy.capture.session import MOST, Session
from torchwhy.errors import ArgumentError

__all__ = ["SECONDS", "Limits", "WholeRun"]

SECONDS = 10.0

_LEFT = 0.1
"""A smaller part of the time is not recorded in a window by itself."""

_AGAIN_S = 0.05
"""After that the clock is looked at again, where PyTorch was at work when time was up."""

_LONG_S = 0.2
"""A program that stands still for so long is told."""

_THREADS_EVERY_S = 0.5
"""How often memory is looked at while all threads are recorded, which takes longer."""


@dataclass(frozen=True)
class Limits:
    """How much is recorded without steps.

    Attributes:
        seconds: how long, > 0.
        growth: bytes of heap after which to look how much was recorded; an operator takes 1060 while it is.
        many: events of a window; ending it takes 20 us each, while the program waits.
        most: events of all windows.
    """

    seconds: float = SECONDS
    growth: int = 64 << 20
    many: int = 50_000
    most: int = MOST

    def __post_init__(self) -> None:
        """Check what users give.

        Raises:
            ArgumentError: seconds not positive.
        """
        if not self.seconds > 0:
            raise ArgumentError(f"seconds must be > 0, got {self.seconds!r}")


class WholeRun:
    """Records everything in windows of a session until steps are found, a limit is reached or the program ends.

    Time counts from the first operator on: what a program does before that, such as reading data, is left out.

    Args:
        session: it records there, in the main thread, which makes this, too.
        limits: how much.
        why: begins the note on a limit that was reached: why everything is recorded; "" where that was asked for.
        more_time: how the user records for longer.
        remedy: how the user records steps.
    """

    def __init__(self, session: Session, limits: Limits, why: str, more_time: str, remedy: str) -> None:
        """Begin nothing yet."""
        self._session, self._limits = session, limits
        self._why, self._more_time, self._remedy = why, more_time, remedy
        self._began = self._ended = 0.0  # of the last window
        self._first: float | None = None  # when the first operator began
        self._held_s = 0.0  # how long the program waited while windows ended
        self._cut = ""
        self._over = False
        self.has_threads = False  # whether all threads are recorded now, or have been
        self._ending = threading.RLock()  # held while another thread ends what all threads do
        self._beginning = 0  # windows of what the main thread did before it started others, where that is little
        self._cancel: list[Callable[[], None]] = []

    def record(self, options: Options) -> None:
        """Record from here on; what was recorded before is dropped."""
        self._without_limits()
        self._session.record_everything(options)
        self._began, self._first, self._cut = time.perf_counter(), None, ""
        self._watch_limits()

    def record_threads(self) -> None:
        """Record what all threads do from here on, for the program is about to start one and may only wait for it.

        In one window: a call that is open in another thread when it ends must not end in a second (`open_calls`).
        Limits end it from a thread of their own, since a main thread that waits does nothing else.
        """
        if self._records() and not self.has_threads and not inside_pytorch() and can_record_all_threads():
            self.has_threads = True
            self._without_limits()
            self._stop()
            if self._worked_s() < _LEFT * self._limits.seconds:
                self._beginning = len(self._session.count_events())
            self._session.record_on(all_threads=True)
            self._began = time.perf_counter()
            self._cancel.append(after(self._limits.seconds, self._end_of_threads, anywhere=True))
            self._cancel.append(
                whenever_memory_grows(
                    self._limits.growth, self._end_of_threads, bytes_of_all_arenas, _THREADS_EVERY_S, anywhere=True
                )
            )

    def _end_of_threads(self) -> None:
        """End the window of all threads; where little happened in it, the main thread is recorded on when it can."""
        with self._ending:
            if not self._records():
                return
            self._stop()
            events = sum(self._session.count_events())
            if self._worked_s() < (1 - _LEFT) * self._limits.seconds and events < self._limits.many:
                self._cancel.append(after(0, self._main_thread_again))
            else:
                self._was_cut(self._worked_s(), f": {events} events", f"{self._more_time}, ")

    def _main_thread_again(self) -> None:
        if not self._over:
            self._go_on()
            self._watch_limits()

    def _watch_limits(self) -> None:
        self._cancel.append(after(self._limits.seconds, self._time_is_up))
        self._cancel.append(whenever_memory_grows(self._limits.growth, self._memory_has_grown))

    def end(self) -> None:
        """There are steps, or the program has ended: limits end nothing any more."""
        with self._ending:
            self._over = True
            self._without_limits()

    def tell(self) -> None:
        """Note what recording cost, and that a limit was reached, where no steps came later."""
        if self.has_threads and self._session.clock is None:
            self._session.leave_out_first(self._beginning)
        if self._held_s >= _LONG_S and self._session.clock is None:
            self._session.notes.append(
                f"the program stood still for {self._held_s:.3g} s while torchwhy put away what it had recorded"
            )
        if self._cut and self._session.clock is None:
            self._session.notes.append(self._cut)
            self._session.cut = True

    def _without_limits(self) -> None:
        while self._cancel:
            self._cancel.pop()()

    def _time_is_up(self) -> None:
        if not self._records():
            return
        if inside_pytorch():
            # When a backward pass returns, PyTorch gives the thread back the recording that it began in, which would
            # have ended by then: no other could begin.
            self._cancel[0] = after(_AGAIN_S, self._time_is_up)
        else:
            self._stop()
            left_s = self._limits.seconds - self._worked_s()
            if left_s > _LEFT * self._limits.seconds:
                self._go_on()
                self._cancel[0] = after(left_s, self._time_is_up)
            else:
                self._was_cut(self._worked_s(), "", f"{self._more_time}, ")

    def _memory_has_grown(self) -> None:
        """Stop when it is events that fill the heap; else record on, in a window of its own.

        PyTorch does not tell how many events it has while it records. A program in a tight loop would fill the memory
        within seconds, and take minutes to read back.
        """
        # Not inside a call that is being recorded: it must not outlive its recording while the next one runs.
        if self._records() and not inside_pytorch():
            self._stop()
            events = self._session.count_events()
            if events[-1:] >= [self._limits.many] or sum(events) >= self._limits.most:
                self._was_cut(
                    self._worked_s(), f": {sum(events)} events, as many as can be read in reasonable time", ""
                )
            else:
                self._go_on()

    def _stop(self) -> None:
        """End a window, and keep it if an operator ran in it. The program waits meanwhile."""
        self._ended = time.perf_counter()
        self._session.stop()
        first_s = self._session.first_operator_s()
        if self._first is None and first_s is not None:
            self._first = self._began + first_s
        self._session.leave_out_empty()
        self._held_s += time.perf_counter() - self._ended

    def _go_on(self) -> None:
        self._session.record_on()
        self._began = time.perf_counter()

    def _worked_s(self) -> float:
        """Seconds from the first operator to the end of the last window."""
        return self._ended - self._first if self._first is not None else 0.0

    def _records(self) -> bool:
        recorder = self._session.recorder
        return not self._over and recorder is not None and recorder.running

    def _was_cut(self, recorded_s: float, why: str, more: str) -> None:
        self._cut = f"{self._why}only {recorded_s:.3g} s of the run were recorded{why}; {more}{self._remedy}"
