"""Questions people ask of a trace; each answer is a `Table`. `Trace` has every one of them as a method."""

from __future__ import annotations

from torchfx.profiler.trace.queries.arguments import arguments
from torchfx.profiler.trace.queries.compilation import compilation
from torchfx.profiler.trace.queries.copies import copies
from torchfx.profiler.trace.queries.critical_path import critical_path
from torchfx.profiler.trace.queries.event_table import event_table
from torchfx.profiler.trace.queries.idle import idle_table
from torchfx.profiler.trace.queries.kernels import kernels
from torchfx.profiler.trace.queries.launches import launches
from torchfx.profiler.trace.queries.memory import memory
from torchfx.profiler.trace.queries.module_times import module_times
from torchfx.profiler.trace.queries.ops import ops
from torchfx.profiler.trace.queries.overlap import overlap
from torchfx.profiler.trace.queries.sql import sql
from torchfx.profiler.trace.queries.step_times import step_times

__all__ = [
    "arguments",
    "compilation",
    "copies",
    "critical_path",
    "event_table",
    "idle_table",
    "kernels",
    "launches",
    "memory",
    "module_times",
    "ops",
    "overlap",
    "sql",
    "step_times",
]
