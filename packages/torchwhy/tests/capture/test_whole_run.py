"""How much of a run without steps is recorded, with a clock, a heap and a session that are played."""

import threading
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.capture import whole_run
from torchwhy.capture.options import Options
from torchwhy.capture.whole_run import EndingCost, Limits, WholeRun

EVENT_BYTES, EVENT_END_S = 550, 18e-6


def never(thread):
    return 0


@dataclass
class Session:
    """Plays a program that calls operators at a rate, and a recorder."""

    rate: float = 0.0  # events a second
    slower: float = 1.0  # how much longer than usual it takes to end a window
    now: float = 0.0
    heap: int = 50 << 20
    running: bool = False
    began: float = 0.0
    windows: list[tuple[float, float, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    clock: None = None
    cut: bool = False
    ordered: bool = False
    watched: float | None = None  # from when on contents are

    @property
    def recorder(self):
        return self

    def record_everything(self, options):
        self.windows, self.running, self.began = [], True, self.now

    def record_on(self, all_threads=False):
        self.running, self.began = True, self.now

    def work(self, seconds):
        self.now += seconds
        if self.running:
            self.heap += int(seconds * self.rate) * EVENT_BYTES

    def stop(self):
        if self.running:
            events = int((self.now - self.began) * self.rate)
            self.windows.append((self.began, self.now, events))
            self.running = False
            self.now += events * EVENT_END_S * self.slower + 0.01
            self.heap -= events * EVENT_BYTES // 2

    def fail(self, error):
        raise AssertionError("nothing goes wrong here") from error

    def first_operator_s(self):
        return 0.0 if self.rate else None

    def leave_out_empty(self):
        if self.windows and not self.windows[-1][2]:
            self.windows.pop()

    def count_events(self):
        return [events for _, _, events in self.windows]

    def recorded_s(self):
        return sum(end - begin for begin, end, _ in self.windows)

    def order_windows(self):
        self.ordered = True

    def watch_contents(self):
        assert not self.running
        self.watched = self.now


@pytest.fixture(autouse=True)
def played(monkeypatch):
    monkeypatch.setattr(whole_run, "whenever", lambda due, act, failed, anywhere=False, left_s=None: lambda: None)


def run(session, seconds, monkeypatch, limits=None, look_s=0.01):
    """Let the program work for so long; return its recording and how long it stood still."""
    monkeypatch.setattr(whole_run, "heap_bytes", lambda: session.heap)
    whole = WholeRun(
        session, limits or Limits(), "", "MORE", "REMEDY", clock=lambda: session.now, waited=lambda thread: 0
    )
    whole.record(Options())
    worked = held = 0.0
    while worked < seconds:
        session.work(look_s)
        worked += look_s
        before = session.now
        if not whole._over and whole._is_due():
            whole._change()
        held += session.now - before
    session.stop()
    whole.end()
    whole.tell()
    return whole, held


@pytest.mark.parametrize("seconds", [0.01, 0.5, 5, 20])
@pytest.mark.parametrize("rate", [0, 10, 300_000])
def test_what_was_due_begins_no_window_while_another_call_ends_one(rate, seconds, monkeypatch):
    """A pending call may be made in the middle of a stop: the recorder runs no more, and has not ended yet."""
    session, nested = Session(rate), []
    whole, _ = run(session, seconds, monkeypatch)
    session.record_everything(Options())
    whole._over, whole._paused, whole._false_alarm = False, False, True
    session.work(1.0)

    def listen(name):
        original = getattr(session, name)
        monkeypatch.setattr(session, name, lambda *given, **named: (nested.append(name), original(*given, **named)))

    session.running = False
    for name in ("stop", "record_on", "record_everything"):
        listen(name)
    whole._change()
    assert not nested
    assert not session.running
    session.running = True
    whole._change()
    assert nested[0] == "stop"


@pytest.mark.parametrize("seconds", [0.2, 5, 60])
@pytest.mark.parametrize("slower", [0.3, 1, 5])
@pytest.mark.parametrize("rate", [10, 1000, 30_000, 300_000, 1_000_000])
def test_a_program_waits_for_no_more_than_its_allowance_and_a_share(rate, slower, seconds, monkeypatch):
    session = Session(rate, slower)
    _, held = run(session, seconds, monkeypatch)
    # A look comes 10 ms late, and a machine five times as slow is known as such after the first window only.
    overshoot = 0.01 * rate * EVENT_END_S * slower
    allowance = 0.2 * max(slower, 1)
    assert held <= allowance + 0.1 * seconds + 2 * overshoot + 0.1


def test_a_tight_loop_is_recorded_in_windows_over_the_run(monkeypatch):
    session = Session(rate=300_000)
    run(session, 9, monkeypatch)
    begins = [begin for begin, _, _ in session.windows]
    gaps = [after - before for before, after in pairwise(begins)]
    assert len(begins) >= 3
    assert gaps == sorted(gaps)
    assert session.cut
    assert session.ordered
    [held, left_out] = session.notes
    assert "was stopped" in held
    events = sum(session.count_events())
    assert f"in {len(begins)} windows with {events} events" in left_out
    assert left_out.endswith("REMEDY")


@pytest.mark.parametrize("rate", [100, 4000])
def test_a_program_of_few_operators_is_recorded_in_one_window(rate, monkeypatch):
    session = Session(rate)
    run(session, 9, monkeypatch)
    assert (len(session.windows), session.notes, session.cut) == (1, [], False)


def test_time_ends_the_recording_and_is_told(monkeypatch):
    session = Session(rate=100)
    run(session, 12, monkeypatch)
    [(begin, end, _)] = session.windows
    assert (begin, end) == (0, pytest.approx(10, abs=0.02))
    assert session.notes == ["only 10 s of the run were recorded; MORE, REMEDY"]
    assert session.watched == pytest.approx(10, abs=0.1)  # with the end of the window


def test_a_heap_that_the_program_fills_pauses_nothing(monkeypatch):
    session = Session(rate=100)
    monkeypatch.setattr(whole_run, "heap_bytes", lambda: session.heap)
    whole = WholeRun(session, Limits(), "", "", "", clock=lambda: session.now, waited=never)
    whole.record(Options())
    for _ in range(500):
        session.work(0.01)
        session.heap += 200_000
        if whole._is_due():
            whole._change()
            assert session.running
    session.stop()
    whole.tell()
    assert len(session.windows) <= 4
    assert not session.cut


def test_no_window_ends_within_a_call_and_all_threads_end_anywhere(monkeypatch):
    session = Session(rate=1e6)
    monkeypatch.setattr(whole_run, "heap_bytes", lambda: session.heap)
    monkeypatch.setattr(whole_run, "bytes_of_all_arenas", lambda: session.heap)
    monkeypatch.setattr(whole_run, "can_record_all_threads", lambda: True)
    inside = [True]
    monkeypatch.setattr(whole_run, "inside_pytorch", lambda: inside[0])
    whole = WholeRun(session, Limits(), "", "", "", clock=lambda: session.now, waited=never)
    whole.record(Options())
    session.work(0.1)
    assert whole._is_due()
    whole._change()
    assert session.running
    inside[0] = False
    whole.record_threads()
    session.leave_out_first = lambda count: None
    assert (session.running, whole.has_threads, len(session.windows)) == (True, True, 1)
    inside[0] = True
    session.work(0.2)
    assert whole._is_due()
    thread = threading.Thread(target=whole._change)
    thread.start()
    thread.join()
    assert (session.running, len(session.windows)) == (False, 2)
    inside[0] = False
    session.work(60)
    whole._change()
    assert not session.running  # time is up


def test_threads_are_recorded_while_a_recording_pauses(monkeypatch):
    session = Session(rate=300_000)
    monkeypatch.setattr(whole_run, "bytes_of_all_arenas", lambda: session.heap)
    monkeypatch.setattr(whole_run, "can_record_all_threads", lambda: True)
    monkeypatch.setattr(whole_run, "heap_bytes", lambda: session.heap)
    whole = WholeRun(session, Limits(), "", "", "", clock=lambda: session.now, waited=never)
    whole.record(Options())
    session.work(0.1)
    assert whole._is_due()
    whole._change()
    assert not session.running
    whole.record_threads()
    assert session.running


def test_time_in_which_a_busy_machine_ran_others_pays_for_nothing(monkeypatch):
    """Half of the time the program waits for a processor: what it may wait for windows is half of that."""
    session = Session(rate=100)
    monkeypatch.setattr(whole_run, "heap_bytes", lambda: session.heap)
    waited = lambda thread: int(session.now * 5e8) if thread else 0  # noqa: E731
    whole = WholeRun(session, Limits(), "", "", "", clock=lambda: session.now, waited=waited)
    whole.record(Options())
    session.work(8)
    assert whole._may_spend_s(session.now) == pytest.approx(0.2 + 0.1 * 4)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 34), st.floats(0, 1e3), st.integers(0, 10**7)), min_size=1),
    st.integers(3 << 20, 1 << 30),
)
def test_whatever_grew_the_heap_before_a_tight_loop_is_learnt_within_a_window(windows, grown):
    cost = EndingCost()
    for size, took_s, events in windows:
        cost.begin(1000)
        cost.foreseen_s(1000 + size)
        assert cost.end(took_s, events) == (events * 550 < size / 2)
    cost.begin(1000)
    cost.foreseen_s(1000 + grown)
    assert not cost.end(0.5, grown // 550 + 1)
    cost.begin(0)
    assert cost.foreseen_s(grown) == pytest.approx(0.5)


def test_a_heap_that_cannot_be_read_is_no_reason():
    cost = EndingCost()
    cost.begin(None)
    assert cost.foreseen_s(None) == cost.foreseen_s(10**9) == 0


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(ValueError, match="seconds must be > 0, got"):
        Limits(seconds)
