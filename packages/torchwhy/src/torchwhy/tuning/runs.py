"""Runs a program in new processes and reads what they leave."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from torchwhy.capture.launch.program import Program
from torchwhy.tuning.change import Change
from torchwhy.tuning.records import Record, Request
from torchwhy.wording import seconds

__all__ = ["Runs", "run_command", "stakes_of"]

GRACE_S: Final = 5.0
"""Between asking a run that takes too long to end, and ending it."""

PROFILED_GRACE_S: Final = 60.0
"""The same for a run that is profiled: then its trace is written and read."""

LARGEST_OUTPUT: Final = 1_000_000
"""Bytes of a program's stdout that are compared."""


def run_command(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, limit_s: float, grace_s: float
) -> str:
    """Run a command to its end; return why it failed, "" if it did not.

    Neither it nor a process that it started outlives this call, except daemons, which start a new session.
    """
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return f"it took longer than {seconds(limit_s)}"
        finally:
            if process.returncode is None:
                _end(process, grace_s)
            else:
                _end_group(process)
    if not status:
        return ""
    said = (folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
    return said or (f"signal {-status}" if status < 0 else f"exit status {status}")


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """End a process and those that it started."""
    _send(process, signal.SIGTERM)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _send(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End processes that a process has left behind: they would disturb the next run.

    Python's tracker of shared memory ignores the first signal and ends by itself when it has cleaned up.
    """
    _send(process, signal.SIGTERM)
    end = time.monotonic() + 1.0
    while hasattr(os, "killpg") and time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):  # macOS: what is left has ended, too
            return
        time.sleep(0.02)
    _send(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


@dataclass(frozen=True)
class Runs:
    """Runs of a program, which works in our working folder.

    Attributes:
        program: what is run.
        folder: for files of the runs; empty.
        start: takes a command, its environment, a folder for `stdout` and `stderr`, after how many seconds the command
            is asked to end, and how many it then has; returns why it failed, or "".
    """

    program: Program
    folder: Path
    start: Callable[[Sequence[str], Mapping[str, str], Path, float, float], str] = run_command

    def run(
        self, change: Change | None, *, limit_s: float, source: str = "", fewest: int = 12, most_s: float = 10.0
    ) -> Record:
        """Run the program once, changed or as it is.

        Args:
            change: what is changed; None for nothing.
            limit_s: a run that takes longer is ended and counts as failed.
            source, fewest, most_s: as of `Request`.
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as room:
            asked, left = Path(room) / "request", Path(room) / "record"
            apply = () if change is None or change.apply is None else (change.apply,)
            asked.write_bytes(pickle.dumps(Request(self.program, left, apply, source, fewest, most_s)))
            code = f"import sys; sys.path[:] = {sys.path!r}; from torchwhy.tuning.observed_run import main; main()"
            environment = {**os.environ, "PYTHONHASHSEED": "0", **(change.environment if change else {})}
            begun = time.perf_counter()
            error = self.start([sys.executable, "-c", code, str(asked)], environment, Path(room), limit_s, GRACE_S)
            wall_s = time.perf_counter() - begun
            if error or not left.exists():
                return Record(error=error or "it left without a record", wall_s=wall_s)
            record = msgspec.msgpack.decode(left.read_bytes(), type=Record)
            printed = (Path(room) / "stdout").read_bytes()[:LARGEST_OUTPUT].decode(errors="replace")
            results = msgspec.structs.replace(record.results, printed="" if record.ended_early else printed)
            return msgspec.structs.replace(record, results=results, wall_s=wall_s)

    def profile(self, limit_s: float) -> tuple[dict[str, float], str]:
        """Record the program as `torchwhy profile` does; return stakes by rule, and why no stakes are known.

        Args:
            limit_s: a run that takes longer is ended; its trace is read nevertheless.
        """
        room = self.folder / "profile"
        words = ["-m"] if self.program.is_module else []
        command = [sys.executable, "-m", "torchwhy", "profile", "--out", str(room), "--format", "json", *words]
        files = self.folder / "profile-output"
        files.mkdir()
        error = self.start(
            [*command, self.program.target, *self.program.arguments], dict(os.environ), files, limit_s, PROFILED_GRACE_S
        )
        found = room / "findings.json"
        if not found.exists():
            return {}, error or "nothing was recorded"
        try:
            return stakes_of(found.read_bytes()), ""
        except msgspec.MsgspecError:
            return {}, "it has the findings of several ranks"


class _Finding(msgspec.Struct):
    slug: str
    time_us: float


class _Window(msgspec.Struct):
    duration_us: float


class _Report(msgspec.Struct):
    """The part of `report.trace_report.TraceReport` that is needed here."""

    window: _Window
    findings: list[_Finding]


def stakes_of(report: bytes) -> dict[str, float]:
    """Return the share of the time that the findings of each rule put at stake, from a `findings.json`."""
    read = msgspec.json.decode(report, type=_Report)
    found: dict[str, float] = {}
    for finding in read.findings:
        share = finding.time_us / read.window.duration_us if read.window.duration_us else 0.0
        found[finding.slug] = max(share, found.get(finding.slug, 0.0))
    return found
