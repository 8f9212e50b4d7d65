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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
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
    "Readers",
    "Thresholds",
    "check_engine",
    "connected",
    "main",
    "read_all",
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


def read_all(
    paths: Sequence[Path],
    workers: int | None = None,
    thresholds: Thresholds | None = None,
    engine: str = "processes",
    readers: Readers | None = None,
) -> Iterator[tuple[Path, Summary | str]]:
    """Yield each path with its summary, or with the reason for its absence, in whatever order they are done.

    At most `workers` traces are in memory at a time.

    Args:
        paths: files.
        workers: how many read at once; as many as there are processors where None, only this process where 1 or where
            the files are small together. With Ray, None is as many as the cluster has room for.
        thresholds: for the rules.
        engine: one of `ENGINES`.
        readers: processes that were started for many such calls; None starts and ends some here, if they are needed.
    """
    sizes = {path: size_of(path) for path in paths}
    largest_first = sorted(paths, key=lambda path: -sizes[path])
    if engine == "ray":
        yield from _in_ray(largest_first, workers, thresholds)
        return
    wanted = workers or (1 if sum(sizes.values()) <= SMALL and readers is None else usable_processors())
    wanted = min(wanted, len(paths))
    if wanted <= 1:
        for path in paths:
            yield path, _here(path, thresholds)
        return
    with nullcontext(readers) if readers is not None else Readers(wanted) as open_readers:
        yield from open_readers.read(largest_first, thresholds)


class Readers:
    """Worker processes, each started when it is first needed; they end with the `with` statement."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._readers = [_Reader() for _ in range(number)]

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.close()

    def read(self, paths: Sequence[Path], thresholds: Thresholds | None) -> Iterator[tuple[Path, Summary | str]]:
        """Yield each path with its summary or the reason for its absence, as `read_all` does."""
        free: SimpleQueue[_Reader] = SimpleQueue()
        for reader in self._readers:
            free.put(reader)

        def read(path: Path) -> Summary | str:
            reader = free.get()
            try:
                return reader.read(path, thresholds)
            finally:
                free.put(reader)

        with ThreadPoolExecutor(self._number) as pool:
            waiting = {pool.submit(read, path): path for path in paths}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            except BaseException:  # GeneratorExit, too: the pool would wait for all that is left
                for job in waiting:
                    job.cancel()
                for reader in self._readers:
                    reader.close()
                raise


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


def _in_ray(
    paths: Sequence[Path], workers: int | None, thresholds: Thresholds | None
) -> Iterator[tuple[Path, Summary | str]]:
    """Read with Ray, on the cluster that RAY_ADDRESS or the program names, or on a local one that is started.

    Every machine must see the files under the same paths, and have torchwhy.
    """
    from importlib import import_module

    ray: Any = import_module("ray")  # annotated in part
    with connected(workers):
        task = ray.remote(num_cpus=1)(_answer)
        most = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        left = list(reversed(paths))
        running: dict[Any, Path] = {}
        while left or running:
            while left and len(running) < most:
                path = left.pop()
                running[task.remote(str(path.absolute()), str(path), thresholds)] = path
            [done], _ = ray.wait(list(running), num_returns=1)
            path = running.pop(done)
            try:
                yield path, ray.get(done)
            except ray.exceptions.RayError as error:
                yield path, f"{path}: the task of Ray that read it failed: {' '.join(str(error).split())[-200:]}"


@contextmanager
def connected(workers: int | None) -> Iterator[None]:
    """Connect to Ray, unless this process is already: it disconnects at the end, and a local instance ends.

    Raises:
        TraceError: Ray cannot be started or reached.
    """
    import logging
    from importlib import import_module

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
