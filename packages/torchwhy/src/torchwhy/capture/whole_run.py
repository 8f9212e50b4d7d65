"""A recording of everything, without steps: as much of the run as the program can wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from torchwhy.capture.main_thread import bytes_of_all_arenas, heap_bytes, whenever
from torchwhy.capture.open_calls import inside_pytorch, inside_transform
from torchwhy.capture.options import Options, can_record_all_threads
from torchwhy.capture.processor_time import waited_ns
from torchwhy.capture.session import MOST, Session
from torchwhy.errors import ArgumentError
from torchwhy.wording import counted, digits

__all__ = ["SECONDS", "EndingCost", "Limits", "WholeRun"]

SECONDS: Final = 10.0

_LEFT: Final = 0.1
"""A smaller part of the time is not recorded in a window by itself."""

_OF_THREADS: Final = 4
"""The window with all threads gets this many times the allowance, because it is the only one."""

_LONG_S: Final = 0.2
"""A pause of the program is reported from this length on (s)."""

_ENDING_S_PER_BYTE: Final = 35e-9
"""What ending a window takes for each byte that its events take on the heap (PyTorch 2.13): 18 us for an event with its
shapes, of 550 bytes; 8 us for one without, of 220.
"""

_EVENT_BYTES: Final = 550

_TELLING: Final = 2 << 20
"""Bytes of events from which the time that ending a window took is theirs and not what every window takes."""


@dataclass(frozen=True)
class Limits:
    """How much is recorded without steps.

    A program waits while a window ends. Windows end, and recording pauses, so that this takes no longer than
    `allowance_s` and a `share` of the time that has passed.

    Attributes:
        seconds: how long, > 0.
        allowance_s: how long the program may wait anyway.
        share: of the time since recording began.
        most: events of all windows.
    """

    seconds: float = SECONDS
    allowance_s: float = 0.2
    share: float = 0.1
    most: int = MOST

    def __post_init__(self) -> None:
        """Check what users give.

        Raises:
            ArgumentError: seconds not positive.
        """
        if not self.seconds > 0:
            raise ArgumentError(f"seconds must be > 0, got {self.seconds!r}")


class EndingCost:
    """Foresees how long ending the window that is open would take, from how much the heap has grown.

    PyTorch does not show how many events it has while it records. What the program itself keeps on the heap grows it,
    too: where events were fewer than that, growth counts for less from then on.
    """

    def __init__(self) -> None:
        """No window is open."""
        self._per_byte = _ENDING_S_PER_BYTE
        self._least: int | None = None  # bytes, since the window began
        self._grown = 0

    def begin(self, heap: int | None) -> None:
        """Open a window; None is where the system does not show it."""
        self._least, self._grown = heap, 0

    def foreseen_s(self, heap: int | None) -> float:
        """Seconds that ending it would take now."""
        if heap is None or self._least is None:
            return 0.0
        self._least = min(self._least, heap)
        self._grown = heap - self._least
        return self._grown * self._per_byte

    def end(self, took_s: float, events: int) -> bool:
        """The window has ended after this time; return whether something else than its events grew the heap."""
        others = events * _EVENT_BYTES < self._grown / 2
        if others:
            self._per_byte /= 4
        elif self._grown >= _TELLING:
            self._per_byte = took_s / self._grown
        return others


class WholeRun:
    """Records everything in windows of a session until steps are found, a limit is reached or the program ends.

    Time counts from the first operator on: what a program does before that, such as reading data, is left out.

    Args:
        session: it records there, in the main thread, which makes this, too.
        limits: how much.
        why: begins the note on a limit that was reached: why everything is recorded; "" where that was requested.
        more_time: how the user records for longer.
        remedy: how the user records steps.
        clock: in seconds.
        waited: how long a thread has waited for a processor, in nanoseconds; see `waited_ns`.
    """

    def __init__(
        self, session: Session, limits: Limits, why: str, more_time: str, remedy: str,
        clock: Callable[[], float] = time.perf_counter,
        waited: Callable[[int | None], int | None] = waited_ns,
    ) -> None:  # fmt: skip
        """Begin nothing yet."""
        self._session, self._limits, self._clock, self._waited = session, limits, clock, waited
        self._why, self._more_time, self._remedy = why, more_time, remedy
        self._start = self._began = self._ended = 0.0  # of the recording, and of the last window
        self._first: float | None = None  # when the first operator began
        self._before_s = 0.0  # of its window, until then
        self._thread = self._had_waited = 0  # the main thread, and how long it had waited for a processor, nanoseconds
        self._held_s = 0.0  # how long the program waited while windows ended
        self._spent_s = 0.0  # of that, without waits for a processor
        self._granted_s = 0.0  # how long it may, whatever the time
        self._cost = EndingCost()
        self._false_alarm = False  # whether it was not events that the last window ended for
        self._paused = False  # whether nothing is recorded now
        self._has_paused = False
        self._over = self._time_is_up = False
        self.has_threads = False  # whether all threads are recorded now, or have been
        self._of_threads = False  # whether the window that is open is that of all threads
        self._ending = threading.RLock()  # held while another thread ends what all threads do
        self._beginning = 0  # windows of what the main thread did before it started others, where that is little
        self._cancel: Callable[[], None] | None = None

    def record(self, options: Options) -> None:
        """Record from here on; what was recorded before is dropped."""
        self._watch_no_more()
        self._session.record_everything(options)
        self._start, self._first, self._before_s = self._clock(), None, 0.0
        self._held_s = self._spent_s = 0.0
        self._thread = threading.get_native_id()
        self._had_waited = self._waited(self._thread) or 0
        self._granted_s = self._limits.allowance_s
        self._paused = self._has_paused = self._over = self._time_is_up = False
        self._window_has_begun()
        self._watch()

    def record_threads(self) -> None:
        """Record what all threads do from here on, for the program is about to start one and may only wait for it.

        In one window: a call that is open in another thread when it ends must not end in a second (`open_calls`).
        It is ended from another thread, since a main thread that waits does nothing else.
        """
        recording = self._paused or self._records()
        if self._over or not recording or self.has_threads or inside_pytorch() or not can_record_all_threads():
            return
        self.has_threads = self._of_threads = True
        self._watch_no_more()
        if self._records():
            self._stop()
        if self._worked_s() < _LEFT * self._limits.seconds:
            self._beginning = len(self._session.count_events())
        self._granted_s = max(self._granted_s, self._spent_s) + _OF_THREADS * self._limits.allowance_s
        self._paused = False  # a call that still waits is to begin nothing meanwhile
        self._session.record_on(all_threads=True)
        self._window_has_begun()
        self._watch(anywhere=True)

    def end(self) -> None:
        """There are steps, or the program has ended: limits no longer apply."""
        with self._ending:
            self._over = True
            self._watch_no_more()

    def tell(self) -> None:
        """Note what recording cost and what of the run was not recorded, where no steps came later.

        The window with most events comes first, for it is read first.
        """
        if self._session.clock is not None:
            return
        if self.has_threads:
            self._session.leave_out_first(self._beginning)
        if self._spent_s >= _LONG_S:
            self._session.notes.append(
                f"the program was stopped for {digits(self._held_s)} s while torchwhy stored its recording"
            )
        note = self._left_out()
        if note:
            self._session.notes.append(note)
            self._session.cut = True
        self._session.order_windows()

    def _left_out(self) -> str:
        """What of the run was not recorded; "" where all of it was."""
        if not (self._has_paused or self._time_is_up):
            return ""
        recorded = f"{self._why}only {digits(self._session.recorded_s() - self._before_s)} s of the run were recorded"
        if not self._has_paused:
            return f"{recorded}; {self._more_time}, {self._remedy}"
        events = self._session.count_events()
        return (
            f"{recorded}, in {counted(len(events), 'window')} with {sum(events)} events: operators are many and "
            f"small, and recording more would make the program over {self._limits.share:.0%} slower; {self._remedy}"
        )

    def _watch(self, anywhere: bool = False) -> None:
        self._cancel = whenever(
            self._is_due, self._change, self._session.fail, anywhere, left_s=lambda: self._left_s(self._clock())
        )

    def _watch_no_more(self) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _is_due(self) -> bool:
        """Whether recording must end, pause or go on now."""
        now = self._clock()
        if self._left_s(now) <= 0:
            return self._records() or self._paused
        if self._records():
            return self._spent_s + self._cost.foreseen_s(self._heap()) >= self._may_spend_s(now)
        return self._paused and self._may_go_on(now)

    def _change(self) -> None:
        """End the window that is open, and record on in another when that may be."""
        with self._ending:
            # The interpreter may make this call while the program, which ends or records itself, ends the window: then
            # no other one may begin.
            if not (self._records() or self._paused):
                return
            # Not inside a call that is being recorded: it must not outlive its recording while the next one runs. When
            # a backward pass or an operator of a transform returns, PyTorch gives the thread back the recording that it
            # began in.
            if self._over or not (self._of_threads or not (inside_pytorch() or inside_transform())):
                return
            if self._records():
                self._stop()
            now = self._clock()
            if self._left_s(now) <= _LEFT * self._limits.seconds or self._has_most():
                self._over, self._time_is_up = True, not self._has_most()
                self._has_paused |= not self._time_is_up
                self._paused = False
                self._watch_no_more()
                if not self.has_threads:
                    self._session.watch_contents()
            elif self._of_threads:
                self._of_threads = False
                self._paused = self._has_paused = True
                self._watch_no_more()
                self._watch()  # the next window is the main thread's
            elif self._false_alarm or self._may_go_on(now):
                self._session.record_on()
                self._window_has_begun()
            else:
                self._paused = self._has_paused = True

    def _has_most(self) -> bool:
        return sum(self._session.count_events()) >= self._limits.most

    def _heap(self) -> int | None:
        return bytes_of_all_arenas() if self._of_threads else heap_bytes()

    def _may_spend_s(self, now: float) -> float:
        waited_s = ((self._waited(self._thread) or 0) - self._had_waited) / 1e9
        return self._granted_s + self._limits.share * (now - self._start - waited_s)

    def _may_go_on(self, now: float) -> bool:
        """Whether as much as was spent so far may be spent again: windows grow and become rarer."""
        return 2 * self._spent_s <= self._may_spend_s(now)

    def _left_s(self, now: float) -> float:
        """Seconds until time is up, of which the threads have their own."""
        since = self._began if self._first is None or self._of_threads else self._first
        return self._limits.seconds - (now - since)

    def _window_has_begun(self) -> None:
        self._paused = False
        self._cost.begin(self._heap())
        self._began = self._clock()

    def _stop(self) -> None:
        """End a window, and keep it if an operator ran in it. The program waits meanwhile."""
        before = sum(self._session.count_events())
        self._ended, waited = self._clock(), self._waited(None) or 0
        self._session.stop()
        first_s = self._session.first_operator_s()
        if self._first is None and first_s is not None:
            self._first, self._before_s = self._began + first_s, first_s
        elif self._first is None and not self._of_threads:
            self._began = self._clock()  # nothing was recorded yet: time counts again
        self._session.leave_out_empty()
        took_s = self._clock() - self._ended
        spent_s = took_s - ((self._waited(None) or 0) - waited) / 1e9
        self._false_alarm = self._cost.end(spent_s, sum(self._session.count_events()) - before)
        self._held_s += took_s
        self._spent_s += spent_s

    def _worked_s(self) -> float:
        """Seconds from the first operator to the end of the last window."""
        return self._ended - self._first if self._first is not None else 0.0

    def _records(self) -> bool:
        recorder = self._session.recorder
        return recorder is not None and recorder.running
