"""One case in a fresh process: a job on its stdin, a reply in the last line of its stdout."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.experiment.case import Case
from torchwhy.experiment.catalogue import workload_named
from torchwhy.experiment.study import CaseResult, run_case
from torchwhy.experiment.workload import CannotRunError, Workload

__all__ = ["main", "run_apart"]


@dataclass(frozen=True)
class Job:
    """What the process is to do."""

    workload: str
    case: Case
    folder: str
    force: bool


@dataclass(frozen=True)
class Reply:
    """What came of it: a result, or an error and whether the caller could have avoided it."""

    result: CaseResult | None = None
    error: str = ""
    misuse: bool = False


def run_apart(workload: Workload, case: Case, folder: Path, force: bool) -> CaseResult:
    """Run a case of a listed workload in a new process, with the same results and errors as `run_case`."""
    job = msgspec.json.encode(Job(workload.name, case, str(folder), force))
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    ran = subprocess.run(command, input=job, capture_output=True, check=False)
    if ran.returncode:
        last = (ran.stderr.decode(errors="replace").strip() or f"exit status {ran.returncode}").splitlines()[-1]
        raise CannotRunError(f"the process for {case} ended early: {last}")
    reply = msgspec.json.decode(ran.stdout.splitlines()[-1], type=Reply, dec_hook=_path)
    if reply.result is None:
        raise (ArgumentError if reply.misuse else CannotRunError)(reply.error)
    return reply.result


def main() -> None:
    """Read a job, run it, write the reply."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    try:
        reply = Reply(run_case(workload_named(job.workload), job.case, Path(job.folder), job.force))
    except TorchWhyError as error:
        reply = Reply(error=str(error), misuse=isinstance(error, ArgumentError))
    sys.stdout.buffer.write(b"\n" + msgspec.json.encode(reply, enc_hook=str))


def _path(kind: type, value: object) -> object:
    return kind(value)
