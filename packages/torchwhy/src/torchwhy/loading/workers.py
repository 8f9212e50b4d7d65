"""Read many traces, a few at a time, and keep a summary of each.

The processes that read take pickled requests on standard input and answer on standard output, so that they need nothing
of the program that started them: no `if __name__ == "__main__"` there, no fork, and no PyTorch here.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, Final

from torchwhy.errors import TraceError
from torchwhy.ranks.summary import Summary, summary_of
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.file.columns import ARGUMENTS
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.model.trace import Trace

__all__ = ["SMALL", "Thresholds", "main", "read_all", "serve"]

Thresholds = Mapping[str, Mapping[str, Any]]

SMALL: Final = 8 << 20
"""Bytes of files up to which this process reads them itself: starting others takes about 0.3 s each."""


def read_all(
    paths: Sequence[Path], processes: int | None = None, thresholds: Thresholds | None = None
) -> Iterator[tuple[Path, Summary | str]]:
    """Yield each path with its summary, or with the reason for its absence, in whatever order they are done.

    At most `processes` traces are in memory at a time.

    Args:
        paths: files.
        processes: how many read at once; as many as there are processors where None, none but this one where 1 or
            where the files are small together.
        thresholds: for the rules.
    """
    sizes = {path: path.stat().st_size for path in paths}
    wanted = processes or (1 if sum(sizes.values()) <= SMALL else os.cpu_count() or 1)
    wanted = min(wanted, len(paths))
    if wanted <= 1:
        for path in paths:
            yield path, _here(path, thresholds)
        return
    free: SimpleQueue[_Reader] = SimpleQueue()
    readers = [_Reader() for _ in range(wanted)]
    for reader in readers:
        free.put(reader)

    def read(path: Path) -> Summary | str:
        reader = free.get()
        try:
            return reader.read(path, thresholds)
        finally:
            free.put(reader)

    largest_first = sorted(paths, key=lambda path: -sizes[path])
    with ThreadPoolExecutor(wanted) as pool:
        waiting = {pool.submit(read, path): path for path in largest_first}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            for job in waiting:
                job.cancel()
            for reader in readers:
                reader.close()


class _Reader:
    """A worker process; started when first needed, and again after one has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, thresholds: Thresholds | None) -> Summary | str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        into, out = self._process.stdin, self._process.stdout
        try:
            pickle.dump((str(path), thresholds), into)  # type: ignore[arg-type]
            into.flush()  # type: ignore[union-attr]
            answer: Summary | str = pickle.load(out)  # type: ignore[arg-type]
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            status = self._process.wait()
            self.close()
            hint = "; with fewer processes at once there is more memory for each" if status < 0 else ""
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
        try:
            answer = _here(Path(path), thresholds)
        except MemoryError:
            answer = f"{path} does not fit into memory"
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    """Serve on standard input and output."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as channel:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the channel
        serve(sys.stdin.buffer, channel)
