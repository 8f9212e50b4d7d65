"""The compiler's log in plain values: what was compiled, how long that took, and why it was done again or cut short."""

from __future__ import annotations

from typing import Final

import msgspec

from torchwhy.trace.model.trace import Trace
from torchwhy.wording import shared_path

__all__ = ["CompilerLog", "LoggedBreak", "LoggedCompilation", "compiler_log"]

LISTED: Final = 1000
"""Compilations and breaks that a report holds, at most: the longest compilations, the first breaks."""


class LoggedBreak(msgspec.Struct, frozen=True):
    """A graph break; see `trace.compile_log.reasons.GraphBreak`."""

    id: str
    line: str
    code: str
    reason: str
    detail: str
    skipped: bool


class LoggedCompilation(msgspec.Struct, frozen=True):
    """A compilation K/M.

    Attributes:
        line: where its function begins; `resumed`: what of it follows a graph break.
        compile_us, backward_us: of the whole frame, and of its backward pass.
        failed_guard: of the latest variant, which did not fit; "" of a first compilation. guard_line: what it protects.
        error, without_cuda_graph: why there is no compiled code, or no CUDA graph; "" where there is.
    """

    id: str
    line: str
    resumed: bool
    compile_us: float
    backward_us: float
    operators: int
    guards: int
    failed_guard: str
    guard_line: str
    error: str
    without_cuda_graph: str


class CompilerLog(msgspec.Struct, frozen=True):
    """The log of a trace.

    Attributes:
        process: that wrote it; `ours`: whether it is the trace's.
        count: of compilations, in all.
    """

    file: str
    process: int
    ours: bool
    pytorch: str
    problem: str
    count: int
    compilations: tuple[LoggedCompilation, ...]
    graph_breaks: tuple[LoggedBreak, ...]


def compiler_log(trace: Trace) -> CompilerLog | None:
    """Return what the compiler noted while a program ran, the longest compilations first; None without a log."""
    log = trace.compile_log
    if log is None:
        return None
    longest = sorted(log.frames.values(), key=lambda one: -(one.compile_us + one.backward_us))[:LISTED]
    compilations = []
    for one in longest:
        guard = next(iter(log.failures.get(one.id, ())), None)
        compilations.append(
            LoggedCompilation(
                one.id,
                one.line,
                one.resumed,
                round(one.compile_us, 3),
                round(one.backward_us, 3),
                one.operators,
                one.guards,
                guard.guard if guard is not None else "",
                guard.line if guard is not None else "",
                one.error,
                one.without_cuda_graph,
            )
        )
    breaks = tuple(
        LoggedBreak(one.id, one.line, one.code, one.reason, one.detail, one.skipped) for one in log.breaks[:LISTED]
    )
    return CompilerLog(
        shared_path(log.file),
        log.process,
        log.ours,
        log.pytorch,
        log.problem,
        len(log.frames),
        tuple(compilations),
        breaks,
    )
