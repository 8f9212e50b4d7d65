"""Hosts, streams and ranks as discrete events. Times are whole nanoseconds.

A host is a list of instructions, carried out one after the other; calls of the runtime put work into streams. Work
begins when its launch was issued, the work before it on its stream has ended, and the events its stream waits for have
happened. A collective ends on all ranks together, a fixed time after the last of them began it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

LAUNCH_LATENCY = 3_000
"""From the issue of a launch until work begins on an idle stream."""
QUEUED_GAP = 700
"""Between two pieces of work of one stream, the second of which was launched long before."""
REPLAYED_GAP = 400
"""The same within a CUDA graph."""
WAKE_UP = 4_000
"""From the end of work until the host, which waits for it, runs again."""
QUEUE_DEPTH = 1024
"""How many launches may wait on one device before the next call blocks."""
ISSUED_AT = 0.6
"""Fraction of a launching call after which the device knows of the work."""


@dataclass(eq=False, slots=True)
class Work:
    """Something a device does: a kernel, a copy, a fill."""

    cat: str
    name: str
    stream: int
    duration: int
    args: dict[str, object] = field(default_factory=dict)
    collective: str | None = None
    replayed: bool = False
    issued: int = -1
    begin: int = -1
    end: int = -1
    correlation: int = 0
    external: int = 0
    annotations: tuple[int, ...] = ()
    after: tuple[Work, ...] = ()

    def again(self, duration: int) -> Work:
        """The same work, to be issued once more."""
        return Work(self.cat, self.name, self.stream, duration, self.args, self.collective, self.replayed)

    @property
    def kind(self) -> str:
        return "communication" if self.collective else "copy" if self.cat != "kernel" else "compute"

    @property
    def resource(self) -> str:
        """What has to be free for it to take no time."""
        return {"communication": "communication", "copy": "copies", "compute": "device"}[self.kind]


@dataclass(frozen=True, slots=True)
class Enter:
    """An event of the host begins: a Python frame, an operator, a label."""

    cat: str
    name: str
    args: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """The innermost open event of the thread ends."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The host does something for a while."""

    duration: int
    doing: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the CUDA runtime.

    `work` is issued by it. `waits` is "" or that for which the call returns no earlier: "stream 7", "device", "work".
    `records` and `obeys` are (stream, event): the event is recorded on the stream, or the stream waits for it.
    """

    name: str
    duration: int
    work: tuple[Work, ...] = ()
    waits: str = ""
    records: tuple[int, str] | None = None
    obeys: tuple[int, str] | None = None
    doing: str = "launch"


@dataclass(frozen=True, slots=True)
class Batch:
    """The host takes a batch from the workers of a data loader."""

    index: int


@dataclass(frozen=True, slots=True)
class Thread:
    """What follows happens on another thread of the process; the thread that ran waits for it."""

    name: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A step begins (its number), or recording begins or ends ("start", "stop")."""

    key: int | str


Instruction = Enter | Exit | Busy | Call | Batch | Thread | Mark


@dataclass(frozen=True)
class Workers:
    """Processes that load batches: how many, how long one batch takes one of them, how many each may have ready."""

    count: int
    load: int
    prefetch: int = 2


@dataclass(eq=False, slots=True)
class Event:
    """What the host did, as a profiler sees it."""

    thread: str
    cat: str
    name: str
    begin: int
    end: int
    args: dict[str, object]
    external: int
    parent: int
    correlation: int = 0
    kept: bool = True


class Machine:
    """One rank: a process and its device.

    `costs`: what recording an event of a category costs the host. `free`: resources that take no time (`RESOURCES`).
    """

    def __init__(
        self, instructions: Sequence[Instruction], workers: Workers, costs: dict[str, int], free: Set[str] = frozenset()
    ) -> None:
        self.instructions = instructions
        self.workers = workers
        self.costs = {} if "host" in free else costs
        self.free = free
        self.now = 0
        self.events: list[Event] = []
        self.works: list[Work] = []
        self.host: list[tuple[int, int, str]] = []
        self.marks: dict[int | str, int] = {}
        self.works_at: dict[int | str, int] = {}
        self.finished = False
        self._unresolved: deque[Work] = deque()
        self._last: dict[int, Work] = {}
        self._obeyed: dict[int, list[Work]] = {}
        self._recorded: dict[str, Work | None] = {}
        self._external = 0
        self._ready: list[int] = []
        self._free: list[int] = []
        self._taken: list[int] = []

    def _spend(self, until: int, doing: str) -> None:
        if until <= self.now:
            return
        if self.host and self.host[-1][2] == doing:
            self.host[-1] = (self.host[-1][0], until, doing)
        else:
            self.host.append((self.now, until, doing))
        self.now = until

    def run(self) -> Iterator[None]:
        """Carry out the instructions; pause where another rank has to get on first."""
        thread = "main"
        stacks: dict[str, list[Event]] = {"main": []}
        for step in self.instructions:
            match step:
                case Enter(cat, name, args):
                    self._spend(self.now + self.costs.get(cat, 0), "profiler")
                    self._external += cat != "python_function"
                    stack = stacks[thread]
                    event = Event(
                        thread, cat, name, self.now, -1, args or {}, self._external, stack[-1].external if stack else 0
                    )
                    stack.append(event)
                    self.events.append(event)
                case Exit():
                    stacks[thread].pop().end = self.now
                case Busy(duration, doing):
                    if ("data" if doing == "loading" else "host") not in self.free:
                        self._spend(self.now + duration, doing)
                case Call():
                    yield from self._call(step, thread, stacks[thread])
                case Batch(index):
                    self._spend(self._batch(index), "waiting for data")
                case Thread(name):
                    thread = name
                    stacks.setdefault(thread, [])
                case Mark(key):
                    self.marks[key] = self.now
                    self.works_at[key] = len(self.works)
        while self.resolve() or self._unresolved:
            if self._unresolved:
                yield
        self.finished = True

    def _call(self, call: Call, thread: str, stack: list[Event]) -> Iterator[None]:
        self._spend(self.now + self.costs.get("cuda_runtime", 0), "profiler")
        self._external += 1
        begin, correlation = self.now, self._external
        around = next((event.external for event in reversed(stack) if event.cat == "cpu_op"), 0)
        event = Event(thread, "cuda_runtime", call.name, begin, -1, {}, around, around, correlation)
        self.events.append(event)
        if call.work and len(self.works) >= QUEUE_DEPTH:
            first = self.works[len(self.works) - QUEUE_DEPTH]
            while first.begin < 0 and not self._get_on(first):
                yield
            self._spend(first.begin, "waiting for the queue")
        duration = 0 if "host" in self.free else call.duration
        issue = self.now + int(duration * ISSUED_AT)
        labels = tuple(event.external for event in stack if event.cat == "user_annotation")
        issued = [work.again(0 if work.resource in self.free else work.duration) for work in call.work]
        if "communication" in self.free:
            issued = [replace(work, collective=None) for work in issued]
        for work in issued:
            work.issued, work.correlation, work.external, work.annotations = issue, correlation, around, labels
            before = self._last.get(work.stream)
            work.after = (*self._obeyed.pop(work.stream, ()), *((before,) if before else ()))
            self._last[work.stream] = work
            self.works.append(work)
            self._unresolved.append(work)
        if call.records:
            self._recorded[call.records[1]] = self._last.get(call.records[0])
        if call.obeys:
            recorded = self._recorded.get(call.obeys[1])
            if recorded is not None:
                self._obeyed.setdefault(call.obeys[0], []).append(recorded)
        self._spend(self.now + duration, call.doing)
        for work in self._waited(call, issued):
            while work.end < 0 and not self._get_on(work):
                yield
            if work.end + WAKE_UP > self.now and work.end > begin:
                self._spend(work.end + WAKE_UP, "waiting for the device")
        event.end = self.now

    def _waited(self, call: Call, issued: list[Work]) -> list[Work]:
        if "waiting" in self.free:
            return []
        if call.waits == "device":
            return list(self._last.values())
        if call.waits == "work":
            return issued
        if call.waits:
            last = self._last.get(int(call.waits.removeprefix("stream ")))
            return [last] if last else []
        return []

    def _get_on(self, work: Work) -> bool:
        self.resolve()
        return work.end >= 0

    def resolve(self) -> bool:
        """Find out when work begins and ends, as far as that is known; True if there was news."""
        news = False
        left: deque[Work] = deque()
        while self._unresolved:
            work = self._unresolved.popleft()
            if work.begin < 0:
                if any(other.end < 0 for other in work.after):
                    left.append(work)
                    continue
                gap = REPLAYED_GAP if work.replayed else QUEUED_GAP
                ready = max((other.end + gap for other in work.after), default=0)
                work.begin = max(work.issued + LAUNCH_LATENCY, ready)
                news = True
                if not work.collective:
                    work.end = work.begin + work.duration
            if work.end < 0:
                left.append(work)
            else:
                news = True
        self._unresolved = left
        return news

    def _batch(self, index: int) -> int:
        """When the workers have the batch, and what taking it sets going."""
        count, prefetch = self.workers.count, self.workers.prefetch
        load = 0 if "data" in self.free else self.workers.load
        if not self._free:
            self._free = [0] * count
        # A batch is asked for when the one that lies `count * prefetch` before it is taken.
        while len(self._ready) < len(self._taken) + count * prefetch:
            number = len(self._ready)
            asked = 0 if number < count * prefetch else self._taken[number - count * prefetch]
            self._free[number % count] = max(self._free[number % count], asked) + load
            self._ready.append(self._free[number % count])
        ready = max(self.now, self._ready[index])
        self._taken.append(ready)
        return ready


def run_all(machines: Sequence[Machine]) -> None:
    """Run the ranks of a job against each other until all have ended."""
    runs = [machine.run() for machine in machines]
    alive = set(range(len(machines)))
    while alive:
        before = (len(alive), [machine.now for machine in machines])
        for rank in sorted(alive):
            if next(runs[rank], "ended") == "ended":
                alive.discard(rank)
        moved = [machine.resolve() for machine in machines]
        met = meet(machines)
        if before == (len(alive), [machine.now for machine in machines]) and not any(moved) and not met:
            raise RuntimeError("the ranks wait for each other")


def meet(machines: Sequence[Machine]) -> bool:
    """End the collectives that all ranks have begun."""
    met = False
    waiting: dict[str, list[Work]] = {}
    for machine in machines:
        for work in machine._unresolved:
            if work.collective and work.begin >= 0 and work.end < 0:
                waiting.setdefault(work.collective, []).append(work)
    for works in waiting.values():
        if len(works) == len(machines):
            end = max(work.begin for work in works) + works[0].duration
            for work in works:
                work.end = end
            met = True
    return met
