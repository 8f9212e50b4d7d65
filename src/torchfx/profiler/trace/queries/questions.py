"""What people ask of a trace, as methods: each is a function of the trace in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchfx.profiler.trace.queries import Question

if TYPE_CHECKING:
    from torchfx.profiler.trace.queries import (
        arguments,
        compilation,
        copies,
        critical_path,
        event_table,
        kernels,
        launches,
        memory,
        module_times,
        ops,
        overlap,
        sql,
        step_times,
    )

__all__ = ["Questions"]


class Questions:
    """The part of `Trace` that is for people rather than for rules."""

    if TYPE_CHECKING:
        ops = ops.ops
        kernels = kernels.kernels
        steps = step_times.step_times
        launches = launches.launches
        copies = copies.copies
        memory = memory.memory
        modules = module_times.module_times
        compile = compilation.compilation
        overlap = overlap.overlap
        critical_path = critical_path.critical_path
        arguments = arguments.arguments
        sql = sql.sql
        to_table = event_table.event_table
    else:
        ops = Question("ops")
        kernels = Question("kernels")
        steps = Question("step_times")
        launches = Question("launches")
        copies = Question("copies")
        memory = Question("memory")
        modules = Question("module_times")
        compile = Question("compilation")
        overlap = Question("overlap")
        critical_path = Question("critical_path")
        arguments = Question("arguments")
        sql = Question("sql")
        to_table = Question("event_table")
