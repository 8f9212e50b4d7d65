"""Read many traces, a few at a time, and keep a summary of each.

The processes that read take pickled requests on standard input and answer on standard output, so that they need nothing
of the program that started them: no `if __name__ == "__main__"` there, no fork, and no PyTorch here.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, Final

from torchwhy.errors import ArgumentError, MissingPackageError, TraceError
from torchwhy.processors import usable_processors
from torchwhy.ranks.summary import Summary, summary_of
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.file.columns import ARGUMENTS
from torchwhy.trace.file.remote import path_of
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.model.trace import Trace

__all__ = [
    "ENGINES",
    "SMALL",
    "Processes",
    "Readers",
    "Thresholds",
    "check_engine",
    "main",
    "readers",
    "serve",
    "size_of",
]

Thresholds = Mapping[str, Mapping[str, Any]]

ENGINES: Final = ("processes", "ray")

SMALL: Final = 8 << 20
"""Bytes of files up to which this process reads them itself: starting others takes about 0.3 s each."""


def check_engine(engine: str, workers: int | None) -> None:
    """Check how traces are to be read.

    Raises:
        ArgumentError: the engine is unknown, or there are to be no workers.
        MissingPackageError: Ray is not installed.
    """
    if engine not in ENGINES:
        raise ArgumentError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if workers is not None and workers < 1:
        raise ArgumentError(f"workers must be >= 1, got {workers}")
    if engine == "ray":
        try:
            import ray  # noqa: F401
        except ImportError as error:
            raise MissingPackageError('engine="ray" needs the package ray: pip install ray') from error


def size_of(path: Path) -> int:
    """Bytes of a file; 0 of a missing file, which reading it will report."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Readers(ABC):
    """Reads traces, a few at once: `start` starts the reading of one, and `next` waits for any of them.

    If it is `full`, one has to be awaited before the next is started.

    Args:
        most: how many traces may be started and not yet awaited.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._started = 0

    @property
    def full(self) -> bool:
        """Whether as many traces are started as may be."""
        return self._started >= self._most

    def start(self, path: Path) -> None:
        """Have a trace read."""
        self._started += 1
        self._start(path)

    def next(self) -> tuple[Path, Summary | str]:
        """Wait for any of the traces: its path, and its summary or the reason for its absence."""
        found = self._next()
        self._started -= 1
        return found

    def read(self, paths: Iterable[Path]) -> Iterator[tuple[Path, Summary | str]]:
        """Yield what `next` returns for each of these traces, in whatever order they are done."""
        for path in paths:
            if self.full:
                yield self.next()
            self.start(path)
        while self._started:
            yield self.next()

    @abstractmethod
    def _start(self, path: Path) -> None: ...

    @abstractmethod
    def _next(self) -> tuple[Path, Summary | str]: ...


@contextmanager
def readers(
    number: int, size: int, workers: int | None = None, thresholds: Thresholds | None = None, engine: str = "processes"
) -> Iterator[Readers]:
    """Provide the readers of traces: worker processes, tasks of Ray, or this process.

    Args:
        number: how many traces there are.
        size: their bytes together.
        workers: how many read at once; as many as there are processors where None, only this process where 1 or where
            the files are small together. With Ray, None is as many as the cluster has room for.
        thresholds: for the rules.
        engine: one of `ENGINES`.

    Raises:
        TraceError: Ray cannot be started or reached.
    """
    count = min(number, workers or (1 if size <= SMALL else usable_processors()))
    if engine == "ray":
        with _connected(workers):
            yield _RayTasks(workers, thresholds)
    elif count <= 1:
        yield _ThisProcess(thresholds)
    else:
        with Processes(count, thresholds) as processes:
            yield processes


class _ThisProcess(Readers):
    """This process reads, one trace at a time, when it is waited for."""

    def __init__(self, thresholds: Thresholds | None) -> None:
        super().__init__(1)
        self._thresholds = thresholds

    def _start(self, path: Path) -> None:
        self._path = path

    def _next(self) -> tuple[Path, Summary | str]:
        return self._path, _here(self._path, self._thresholds)


class Processes(Readers):
    """Worker processes, each started when it is first needed; they end with the `with` statement.

    Twice as many traces as processes can be started, so that the processes have work between two calls of `next`.
    """

    def __init__(self, number: int, thresholds: Thresholds | None) -> None:
        super().__init__(2 * number)
        self._thresholds = thresholds
        self._readers = [_Reader() for _ in range(number)]
        self._free: SimpleQueue[_Reader] = SimpleQueue()
        self._done: SimpleQueue[tuple[Path, Future[Summary | str]]] = SimpleQueue()
        self._pool = ThreadPoolExecutor(number)
        for reader in self._readers:
            self._free.put(reader)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._close()  # after Ctrl-C some still read, and the pool would wait for them
        self._pool.shutdown()
        self._close()

    def _close(self) -> None:
        for reader in self._readers:
            reader.close()

    def _start(self, path: Path) -> None:
        self._pool.submit(self._read, path).add_done_callback(lambda future: self._done.put((path, future)))

    def _next(self) -> tuple[Path, Summary | str]:
        path, future = self._done.get()
        return path, future.result()

    def _read(self, path: Path) -> Summary | str:
        reader = self._free.get()
        try:
            return reader.read(path, self._thresholds)
        finally:
            self._free.put(reader)


class _Reader:
    """A worker process; started when first needed, and again after one has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, thresholds: Thresholds | None) -> Summary | str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _program()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the process that asks, which ends this one
            )
        process = self._process
        try:
            pickle.dump((str(path), thresholds), process.stdin)  # type: ignore[arg-type]
            process.stdin.flush()  # type: ignore[union-attr]
            answer: Summary | str = pickle.load(process.stdout)  # type: ignore[arg-type]
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            status = process.wait()
            self.close()
            hint = "; with fewer workers at once there is more memory for each" if status < 0 else ""
            return f"{path}: the process that read it ended with status {status}{hint}"
        return answer

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _program() -> str:
    """Import from where this process does, whatever lies in the current folder."""
    return f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"


class _RayTasks(Readers):
    """Tasks of Ray, on the cluster that RAY_ADDRESS or the program names, or on a local one that was started.

    Every machine must see the files under the same paths, and have torchwhy.
    """

    def __init__(self, workers: int | None, thresholds: Thresholds | None) -> None:
        self._ray: Any = import_module("ray")  # annotated in part
        super().__init__(workers or max(1, int(self._ray.cluster_resources().get("CPU", 1))))
        self._thresholds = thresholds
        self._task = self._ray.remote(num_cpus=1)(_answer)
        self._running: dict[Any, Path] = {}

    def _start(self, path: Path) -> None:
        self._running[self._task.remote(str(path.absolute()), str(path), self._thresholds)] = path

    def _next(self) -> tuple[Path, Summary | str]:
        [done], _ = self._ray.wait(list(self._running), num_returns=1)
        path = self._running.pop(done)
        try:
            return path, self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            return path, f"{path}: the task of Ray that read it failed: {' '.join(str(error).split())[-200:]}"


@contextmanager
def _connected(workers: int | None) -> Iterator[None]:
    """Connect to Ray, unless this process is already: it disconnects at the end, and a local instance ends.

    Raises:
        TraceError: Ray cannot be started or reached.
    """
    import logging

    ray: Any = import_module("ray")
    started = not ray.is_initialized()
    if started:
        local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": workers, "include_dashboard": False}
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **local)
        except Exception as error:  # its errors have no common class
            said = " ".join(str(error).split())[-200:] or type(error).__name__
            raise TraceError(f"Ray cannot be started or reached: {said}") from error
    try:
        yield
    finally:
        if started:
            ray.shutdown()


def _answer(path: str, name: str, thresholds: Thresholds | None) -> Summary | str:
    """The summary of the trace at a path, by the name that it has for those who asked."""
    try:
        found = _here(path_of(path), thresholds)
    except MemoryError:
        return f"{name} does not fit into memory"
    return found.replace(path, name) if isinstance(found, str) else replace(found, file=name)


def _here(path: Path, thresholds: Thresholds | None) -> Summary | str:
    """The summary of a trace, or the reason for its absence: it cannot be read, or is no trace."""
    try:
        trace = Trace(str(path), scan(str(path), ARGUMENTS))
    except TraceError as error:
        return str(error)
    diagnosis = diagnose(trace, thresholds=thresholds)
    return summary_of(trace, diagnosis.findings, diagnosis.failed)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each (path, thresholds) with a `Summary`, or with the reason why it is missing."""
    while True:
        try:
            path, thresholds = pickle.load(requests)
        except EOFError:
            return
        pickle.dump(_answer(path, path, thresholds), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    """Serve on standard input and output, until the process that asks has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows sessions do not keep it away
    with suppress(BrokenPipeError), os.fdopen(os.dup(sys.stdout.fileno()), "wb") as channel:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the channel
        serve(sys.stdin.buffer, channel)
