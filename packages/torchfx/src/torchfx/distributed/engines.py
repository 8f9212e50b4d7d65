"""Who does the work: threads of this process, forks of it, or Ray."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from torchfx.distributed.files import Outcome, heard_warnings, process_job
from torchfx.distributed.manifest import Manifest
from torchfx.distributed.recipe import Recipe
from torchfx.distributed.sources import Job
from torchfx.errors import ArgumentError, TorchFXError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

__all__ = ["ENGINES", "Work", "cores"]

AHEAD = 64  # jobs handed out for each worker: a long file keeps the others busy that long
GRACE_S = 2.0  # time for a fork whose parent was killed to drop its current file
RAY_TASK = 16  # files of one task: starting a task takes a few milliseconds


@dataclass(frozen=True)
class Work:
    """The jobs and their processing.

    Attributes:
        jobs: the files to read and to write.
        recipe: what becomes of each.
        overwrite: the targets that may be replaced.
        manifest: where it is noted, or None.
    """

    jobs: Sequence[Job]
    recipe: Recipe
    overwrite: frozenset[str]
    manifest: Manifest | None = None

    def do(self, job: Job, check: Callable[..., object] | None = None) -> Outcome:
        """Do one job and note it."""
        entry = None if self.manifest is None else self.manifest.begin(job)
        outcome = process_job(job, self.recipe, job.target in self.overwrite, check)
        if self.manifest is not None and entry is not None:
            self.manifest.end(entry, outcome)
        return outcome


class _Stopped(Exception):  # noqa: N818  (no error: the caller has left)
    """The work is no longer wanted."""


def in_threads(work: Work, workers: int) -> Iterator[Outcome]:
    """Do the jobs in threads, each file in one: while one decodes, others filter and encode.

    Outcomes come in the jobs' order. PyTorch's threads and the native library's are shared out among the workers. If
    the caller leaves, the files under way are dropped.
    """
    with heard_warnings():
        if min(workers, len(work.jobs)) < 2:  # in this thread, with all of PyTorch's
            for job in work.jobs:
                yield work.do(job)
            return
        from concurrent.futures import ThreadPoolExecutor  # loads `logging`, which one file needs not

        stop = Event()

        def check(*_: object) -> None:
            if stop.is_set():
                raise _Stopped

        with _shared_out(workers), ThreadPoolExecutor(workers, "torchfx") as pool:
            under_way: deque[Future[Outcome]] = deque()
            try:
                for job in work.jobs:
                    under_way.append(pool.submit(work.do, job, check))
                    if len(under_way) >= AHEAD * workers:
                        yield under_way.popleft().result()
                while under_way:
                    yield under_way.popleft().result()
            finally:
                stop.set()
                pool.shutdown(cancel_futures=True)


@contextmanager
def _shared_out(workers: int) -> Iterator[None]:
    """Give each worker its share of PyTorch's threads, which our native library asks for as well."""
    torch = sys.modules.get("torch")  # where samples are copied it is not loaded
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // workers))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_processes(work: Work, workers: int) -> Iterator[Outcome]:
    """Do the jobs in forks of this process: short files take mostly Python, of which only one thread runs at a time.

    Outcomes come in the jobs' order. A fork has one thread. If the caller leaves, the files under way are dropped.

    Raises:
        ArgumentError: the system cannot fork.
        TorchFXError: a fork died.
    """
    if not hasattr(os, "fork"):
        raise ArgumentError(f'engine must be "threads" where the system cannot fork, got "processes" on {sys.platform}')
    if min(workers, len(work.jobs)) < 2:
        yield from in_threads(work, 1)
        return
    from multiprocessing import get_context

    fork = get_context("fork")
    with heard_warnings(), tempfile.TemporaryFile(buffering=0) as tickets:
        tickets.write(array("Q", range(len(work.jobs))).tobytes())
        tickets.seek(0)
        forks: dict[Connection, Any] = {}
        try:
            for _ in range(min(workers, len(work.jobs))):
                outcomes, sender = fork.Pipe(duplex=False)
                forks[outcomes] = fork.Process(target=_serve, args=(work, tickets.fileno(), sender), daemon=True)
                forks[outcomes].start()
                sender.close()
            done: dict[int, Outcome] = {}
            due = 0
            for number, outcome in _received(forks):
                done[number] = outcome
                while due in done:
                    yield done.pop(due)
                    due += 1
        finally:
            for each in forks.values():
                each.terminate()
            for outcomes, each in forks.items():
                each.join()
                outcomes.close()


def _received(forks: Mapping[Connection, Any]) -> Iterator[tuple[int, Outcome]]:
    """Yield what forks send until all have ended."""
    from multiprocessing.connection import wait

    at_work = dict(forks)
    while at_work:
        ready = wait(list(at_work))
        for outcomes in [each for each in at_work if each in ready]:
            try:
                yield outcomes.recv()
            except EOFError:  # noqa: PERF203
                fork = at_work.pop(outcomes)
                fork.join()
                if fork.exitcode:
                    raise TorchFXError(f"a fork died, exit status {fork.exitcode}") from None


def _serve(work: Work, tickets: int, sender: Connection) -> None:
    """Do jobs in a fork until none is left. A ticket is a job's number; the forks share the position in their file."""

    def end(*_: object) -> None:
        raise SystemExit(1)

    Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its forks
    torch = sys.modules.get("torch")
    if torch is not None:  # OpenMP's threads do not survive a fork
        torch.set_num_threads(1)
    with suppress(BrokenPipeError):
        while ticket := os.read(tickets, 8):
            number = int.from_bytes(ticket, sys.byteorder)
            sender.send((number, work.do(work.jobs[number])))


def _end_with_parent() -> None:
    """End this fork when its parent has: one that was killed ends nothing itself.

    The file under way is dropped, as by `terminate`. A call that does not return, so that nothing can be, is left.
    """
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


def in_ray(work: Work, workers: int) -> Iterator[Outcome]:
    """Do the jobs with Ray Data, on the cluster this program is part of, or on a local one that is started.

    Every machine must see the files under the same paths. Outcomes come as they are done.
    """
    import logging

    try:
        import ray
    except ImportError as error:
        raise ArgumentError('engine="ray" needs the package ray: pip install "ray[data]"') from error
    started = not ray.is_initialized()
    if started:
        local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": workers, "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **local)
    try:
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        ray.data.DataContext.get_current().enable_progress_bars = False
        entries = {job: work.manifest.begin(job) for job in work.jobs} if work.manifest is not None else {}
        rows = [{"source": job.source, "target": job.target} for job in work.jobs]
        tasks = min(len(rows), max(workers, -(-len(rows) // RAY_TASK)))
        jobs = ray.data.from_items(rows, override_num_blocks=tasks)
        for row in jobs.map(_Worker(work.recipe, work.overwrite)).iter_rows():
            outcome = row["outcome"]
            if work.manifest is not None:
                work.manifest.end(entries[outcome.job], outcome)
            yield outcome
    finally:
        if started:
            ray.shutdown()


@dataclass(frozen=True)
class _Worker:
    """A job in a process of Ray's."""

    recipe: Recipe
    overwrite: frozenset[str]

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        job = Job(row["source"], row["target"])
        with heard_warnings():
            return {"outcome": process_job(job, self.recipe, job.target in self.overwrite)}


ENGINES: dict[str, Callable[[Work, int], Iterator[Outcome]]] = {
    "threads": in_threads,
    "processes": in_processes,
    "ray": in_ray,
}


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
