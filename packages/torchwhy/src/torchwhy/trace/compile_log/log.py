"""A compiler's log, read: what was compiled, why graphs broke, which guards failed, why CUDA graphs were left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from torchwhy.errors import TraceError
from torchwhy.trace.compile_log.reasons import (
    GraphBreak,
    GuardFailure,
    graph_break,
    guard_failures,
    kernel_lines,
    place_of,
)
from torchwhy.trace.compile_log.records import Record, Scan, names_process, scan
from torchwhy.wording import counted, safe, shortened

__all__ = ["FILE", "CompileLog", "CompiledFrame", "load_compile_log", "log_beside"]

FILE: Final = "compile.log"
"""The name of the log of `torchwhy profile --compile-log` in a run's folder."""

_FILES: Final = 4096
"""Files of a folder that are read."""


@dataclass(frozen=True)
class CompiledFrame:
    """One compilation K/M, by the compiler's own account.

    Attributes:
        frame, version: K and M.
        line: where the function begins, as "train.py(34): step".
        resumed: whether it is the rest of that function after a graph break.
        compile_us, backward_us: how long compiling it took, and its backward pass, which is compiled later.
        operators: in its graph.
        guards: that a call checks.
        error: why it failed; "" where it did not.
        without_cuda_graph: why it is not replayed as a CUDA graph; "" if it is, or was not to be.
    """

    frame: int
    version: int
    line: str = ""
    resumed: bool = False
    compile_us: float = 0.0
    backward_us: float = 0.0
    operators: int = 0
    guards: int = 0
    error: str = ""
    without_cuda_graph: str = ""

    @property
    def id(self) -> str:
        """K/M."""
        return f"{self.frame}/{self.version}"

    @property
    def gave_up(self) -> bool:
        """Whether PyTorch made no further variant of the function, since it has too many."""
        return "limit exceeded" in self.error or "recompile_limit" in self.error


@dataclass(frozen=True)
class CompileLog:
    """The compilations of a process, as PyTorch logged them.

    Attributes:
        file: where it was read from.
        process: the number of the process that wrote it.
        ours: whether that is the trace's process; else ids agree only if both ran the same program.
        pytorch: its version; "" where the log does not say.
        frames: the compilations by their ids, in order.
        breaks: graph breaks, each compilation, line and reason once, in order.
        failures: the guards that failed, by the id K/M of the compilation they caused.
        kernels: the program's lines that a generated kernel computes, by its name.
        problem: what is wrong with the log, in a sentence; "" for nothing.
    """

    file: str
    process: int = -1
    ours: bool = True
    pytorch: str = ""
    frames: Mapping[str, CompiledFrame] = field(default_factory=dict)
    breaks: tuple[GraphBreak, ...] = ()
    failures: Mapping[str, tuple[GuardFailure, ...]] = field(default_factory=dict)
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""


def log_beside(trace: Path) -> CompileLog | None:
    """Return the log in the run's folder of a trace; None without one. What is wrong with it is its `problem`."""
    path = trace.parent / FILE
    if not path.is_file() or not (trace.parent / "run.json").is_file():  # others call their files so, too
        return None
    try:
        return load_compile_log(path)
    except TraceError as error:
        return CompileLog(str(path), problem=f"{str(error)[0].upper()}{str(error)[1:]}.")


def load_compile_log(path: Path, processes: Iterable[str] = (), rank: int | None = None) -> CompileLog:
    """Read a log, or the one of a trace's process in a folder of logs.

    Args:
        path: a file, a run's folder, or the folder that TORCH_TRACE named.
        processes: numbers of the trace's processes; none where that isn't known.
        rank: of the trace; None outside a distributed program.

    Raises:
        TraceError: there is no such file, it is no such log, or nothing says which of several logs is meant.
    """
    try:
        file = _chosen(path, frozenset(processes), rank) if path.is_dir() else path
        state = Scan()
        read = _Reader()
        for record in scan(file, state):
            read.take(record)
    except OSError as error:
        raise TraceError(f"the compiler's log {path} cannot be read: {error.strerror or error}") from error
    if not state.records:
        raise TraceError(
            f"{file} is no compiler's log: no line begins like those that PyTorch writes for TORCH_TRACE "
            "(V1128 06:50:01.123456 4711 torch/...:589] {...})"
        )
    known = {one for one in processes if one.isdecimal()}
    return replace(
        read.log(str(file)),
        process=state.process,
        ours=not known or str(state.process) in known,
        problem=_problem(state),
    )


def _problem(state: Scan) -> str:
    if state.cut:
        return f"The compiler's log was read up to record {state.records:,}; it is longer."
    if state.unread:
        return f"{counted(state.unread, 'line')} of the compiler's log could not be read: it is damaged or cut off."
    return ""


def _chosen(folder: Path, processes: frozenset[str], rank: int | None) -> Path:
    """The log in a folder that belongs to a trace."""
    own = folder / FILE
    if own.is_file():
        return own
    files = sorted(one for one in folder.iterdir() if one.is_file() and one.suffix == ".log")[:_FILES]
    logs = {one: names_process(one) for one in files}
    logs = {one: process for one, process in logs.items() if process >= 0}
    if not logs:
        raise TraceError(f"{folder} has no compiler's log in it: PyTorch writes one for TORCH_TRACE={folder}")
    ours = [one for one, process in logs.items() if str(process) in processes]
    if not ours and rank is not None:
        ours = [one for one in logs if f"rank_{rank}_" in one.name]
    if len(ours or logs) == 1:
        return next(iter(ours or logs))
    names = ", ".join(one.name for one in (*ours, *logs)[:3])
    raise TraceError(
        f"{folder} has the logs of {len(ours or logs)} processes, and nothing says which is the trace's: name one, "
        f"such as {names}"
    )


class _Reader:
    """Puts the records of a log together; numbers of file names stand for the names noted before."""

    def __init__(self) -> None:
        self._files: dict[int, str] = {}
        self._frames: dict[str, CompiledFrame] = {}
        self._breaks: dict[GraphBreak, None] = {}
        self._failures: dict[str, tuple[GuardFailure, ...]] = {}
        self._kernels: dict[str, tuple[str, ...]] = {}
        self._pytorch = ""

    def take(self, record: Record) -> None:
        fields, value = record.fields, record.fields[record.kind]
        frame, version = _integer(fields.get("frame_id")), _integer(fields.get("frame_compile_id"))
        if record.kind == "str":
            self._intern(value)
        elif record.kind == "dynamo_start":
            self._start(frame, version, value)
        elif record.kind == "artifact" and isinstance(value, dict):
            self._artifact(str(value.get("name")), frame, version, record.payload)
        elif isinstance(value, dict):
            self._metrics(record.kind, frame, version, value)

    def log(self, file: str) -> CompileLog:
        return CompileLog(
            file,
            pytorch=self._pytorch,
            frames=self._frames,
            breaks=tuple(self._breaks),
            failures=self._failures,
            kernels=self._kernels,
        )

    def _intern(self, value: Any) -> None:
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
            self._files[_integer(value[1])] = value[0][:4096]

    def _start(self, frame: int, version: int, value: Any) -> None:
        stack = value.get("stack") if isinstance(value, dict) else None
        last = stack[-1] if isinstance(stack, list) and stack and isinstance(stack[-1], dict) else {}
        name, file = str(last.get("name", "")), self._files.get(_integer(last.get("filename")), "")
        line, known = _line(file, last.get("line"), name), self._frames.get(f"{frame}/{version}")
        if (
            known is not None and known.line and line and known.line != line
        ):  # torch._dynamo.reset() lets the numbers begin again
            del self._frames[known.id]
            self._failures.pop(known.id, None)
            self._breaks = {one: None for one in self._breaks if one.id != known.id}
        self._note(frame, version, resumed=_is_rest(name), **({"line": line} if line else {}))

    def _artifact(self, name: str, frame: int, version: int, payload: str) -> None:
        if name == "dynamo_graph_break_reason":
            self._breaks[graph_break(payload, frame, version)] = None
        elif name == "recompile_reasons":
            self._failures[f"{frame}/{version}"] = guard_failures(payload)
        elif name == "torch_version":
            self._pytorch = shortened(safe(str(_object(payload).get("pytorch_version", ""))))
        else:
            self._kernels.update(kernel_lines(_object(payload)))

    def _metrics(self, kind: str, frame: int, version: int, value: dict[str, Any]) -> None:
        skipped = _sentence(value.get("cudagraph_skip_reason"))
        took = _number(value.get("duration_us")) or 1e6 * _number(value.get("entire_frame_compile_time_s"))
        if kind != "compilation_metrics":
            known = self._frames.get(f"{frame}/{version}", CompiledFrame(frame, version))
            more = took if kind == "bwd_compilation_metrics" else 0.0
            why = known.without_cuda_graph or skipped
            self._note(frame, version, backward_us=known.backward_us + more, without_cuda_graph=why)
            return
        name, file = str(value.get("co_name") or ""), str(value.get("co_filename") or "")
        changes: dict[str, Any] = {
            "compile_us": took,
            "operators": max(_integer(value.get("graph_op_count")), 0),
            "guards": max(_integer(value.get("guard_count")), 0),
            "error": _sentence(value.get("fail_reason")),
            "without_cuda_graph": skipped,
        }
        if name and file:
            changes |= {"line": _line(file, value.get("co_firstlineno"), name), "resumed": _is_rest(name)}
        self._note(frame, version, **changes)

    def _note(self, frame: int, version: int, **changes: Any) -> None:
        """Add to what is known of a compilation."""
        if frame < 0 or version < 0:
            return
        one = f"{frame}/{version}"
        self._frames[one] = replace(self._frames.get(one, CompiledFrame(frame, version)), **changes)


def _line(file: str, line: object, name: str) -> str:
    return place_of(file, _integer(line), name) if file and name else ""


def _is_rest(name: str) -> bool:
    return name.startswith("torch_dynamo_resume_in_")


def _integer(value: object) -> int:
    """A number of a frame or line; -1 for anything else, or too large a number."""
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else -1


def _number(value: object) -> float:
    """A time; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0.0


def _sentence(value: object) -> str:
    return shortened(safe(value.strip().partition("\n")[0]), 240) if isinstance(value, str) else ""


def _object(payload: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
