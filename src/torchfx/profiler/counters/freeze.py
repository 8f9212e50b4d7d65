"""From what grew during a count to frozen `Counts`, with notes on what they cannot tell."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchfx.profiler.counters.compiler import Compiled, CompilerMark, breaks_in, note_on_uncompiled
from torchfx.profiler.counters.counts import Counts
from torchfx.profiler.counters.environment import environment
from torchfx.profiler.counters.records import CopyTotal, Sync
from torchfx.profiler.counters.tally import Tally
from torchfx.profiler.counters.trace import Traced

__all__ = ["freeze"]


def freeze(tally: Tally, mark: CompilerMark, traced: Traced | None, wish: bool | None) -> Counts:
    """Return what was counted; `traced` is None where nothing was recorded, `wish` what the caller asked for."""
    compiled = mark.since()
    uses_device = torch.cuda.is_initialized()
    return Counts(
        operators=dict(tally.operators),
        native_calls=dict(tally.native),
        syncs=tuple(Sync(*key, times) for key, times in tally.syncs.items()),
        copies={kind: CopyTotal(times, tally.copied_bytes[kind]) for kind, times in tally.copies.items()},
        allocations=tally.allocations,
        allocated_bytes=tally.allocated_bytes,
        compilations=len(compiled.frames),
        graph_breaks=(*compiled.graph_breaks, *breaks_in(traced.resumed if traced else (), compiled.frames)),
        recompiles=compiled.recompiles,
        kernel_launches=traced.kernel_launches if traced else None if uses_device else 0,
        dispatches=traced.dispatches if traced else None,
        notes=tuple(_notes(mark, compiled, traced, wish, uses_device)),
        environment=environment(),
    )


def _notes(
    mark: CompilerMark, compiled: Compiled, traced: Traced | None, wish: bool | None, uses_device: bool
) -> Iterator[str]:
    if traced is None and wish:
        yield "dispatches and launches are not counted: another profiler, or another thread's count, is recording"
    elif traced is None and uses_device:
        yield "kernel launches are not counted without a trace: count(trace=True)"
    if mark.earlier and not compiled.frames and traced is None:
        met = f"{mark.earlier} earlier in this process"
        yield f"graph_breaks are met while compiling, {met}; count(trace=True) sees them"
    yield from note_on_uncompiled(compiled.frames)
