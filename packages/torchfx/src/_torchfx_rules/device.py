"""torchfx's operators on a GPU, or without the native library."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _torchfx_rules.calls import calls_of
from torchwhy.finding import Finding
from torchwhy.rules.copies.transfers import transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["gpu_not_worth_it", "launches_per_section", "reference_path"]


@rule(
    "G3",
    "per-section-launches",
    source="launches inside torchfx's operators; 16 per call, kernels below 10 us, the device idle for half of it",
    needs={"gpu", "idle", "order"},
    frees="host",
)
def launches_per_section(
    trace: Trace, *, launches: int = 16, kernel_us: float = 10.0, idle: float = 0.5, share: float = 0.05
) -> Iterator[Finding]:
    """A filter on the GPU launches many short kernels for a short signal.

    Sees: calls of torchfx's filters that launch sixteen kernels or more each with a median below 10 microseconds, and
    the time within them during which the device has no work.

    Costs: launches grow with sections, not with samples, so short chunks cost as much as long ones; in real time that
    eats the budget of a chunk.

    Fix: longer chunks or more channels per call; a CUDA graph around a chunk of fixed length; or the CPU, whose native
    path takes one call for any number of sections.

    Known problems: the median kernel is judged, so one long kernel among short ones changes nothing.
    """
    rows = np.array([call.row for call in trace.derived(calls_of)], np.int32)
    if not len(rows):
        return
    events = trace.events
    inside = events.times_of(rows)
    made = trace.links.launches
    made = made[events.covered(made, inside) > 0]
    kernels = trace.links.put_by(made)
    lost = inside & trace.derived(idle_time)
    if len(made) < launches * len(rows) or not len(kernels) or trace.window.share(lost) < share:
        return
    if float(np.median(events.dur[kernels])) >= 1000 * kernel_us or lost.total < idle * inside.total:
        return
    yield Finding(
        title=f"Each call of a filter launches {len(made) / len(rows):.0f} kernels of "
        f"{duration_ns(float(np.median(events.dur[kernels])))} each; the device is idle for "
        f"{percent(lost.total / inside.total)} of these calls",
        confidence="medium",
        stretches=inside.clip(trace.window.start, trace.window.end),
        window=trace.window,
        evidence=evidence(trace, rows, times=events.covered(rows, lost)),
        cause="Each section and block is launched separately, and the signal is too short to keep the device busy.",
        fix="Filter longer chunks or more channels at once, record a CUDA graph for chunks of fixed length, or filter "
        "short chunks on the CPU.",
        linked=True,
    )


@rule(
    "G4",
    "gpu-not-worth-it",
    source="copies around torchfx's operators against their kernels; a minute of audio, four channels",
    needs={"gpu"},
    frees="exposed",
)
def gpu_not_worth_it(trace: Trace, *, copy_mb: float = 12.0, share: float = 0.1) -> Iterator[Finding]:
    """Signals go to the GPU for less work than the way there takes.

    Sees: copies between host and device in steps that call torchfx's filters, of less than 12 MB each (a minute of
    float32 audio at 48 kHz), that take longer than all kernels together.

    Costs: the copies, and the launches; the CPU's native path filters such a signal in less.

    Fix: stay on the CPU, or keep signals on the GPU for everything that is done to them. For recursive filters the GPU
    is worth its copies above a minute, four channels or a hundred taps, or so.

    Known problems: what happens to the signal on the device besides filtering isn't weighed beyond its kernels.
    """
    events = trace.events
    calls = trace.derived(calls_of)
    if not calls:
        return
    moved = trace.derived(transfers)
    across = moved.way("HtoD", "DtoH")
    copies, sizes = moved.rows[across], moved.bytes[across]
    if not len(copies) or (sizes == 0).any() or int(sizes.max()) >= 1e6 * copy_mb:
        return
    spent = events.times_of(copies)
    computing = trace.gpu.compute.clip(trace.window.start, trace.window.end)
    lost = spent - computing
    rows = np.array([call.row for call in calls], np.int32)
    launched = trace.links.put_by(trace.links.launches)
    if not len(launched) or lost.total <= computing.total or trace.window.share(lost) < share:
        return
    yield Finding(
        title=f"Copying signals to the GPU and back takes {duration_ns(lost.total)}, filtering them there "
        f"{duration_ns(computing.total)}",
        confidence="medium",
        stretches=spent.clip(trace.window.start, trace.window.end),
        window=trace.window,
        evidence=(*evidence(trace, copies), *evidence(trace, rows, limit=2)),
        cause="The signals are short: the way to the device and back costs more than the work on it.",
        fix="Leave short signals on the CPU, or keep them on the device from the first effect to the last: one "
        'wave.to("cuda"), and back once.',
    )


@rule(
    "G8",
    "reference-path",
    source="operators of plain PyTorch inside torchfx's on the CPU, where the native library makes a single call",
    frees="host",
)
def reference_path(trace: Trace, *, operators: int = 30, share: float = 0.01) -> Iterator[Finding]:
    """torchfx's filters run without the native library.

    Sees: calls of torchfx's filters with thirty or more operators of plain PyTorch inside, and nothing launched on a
    device by them.

    Costs: ten to a hundred times what the native library takes.

    Fix: `torchfx info` says why it isn't used: no C++ compiler when torchfx was installed, or TORCHFX_NATIVE=0.

    Known problems: the reference path is used on purpose where gradients or exotic devices need it.
    """
    calls = trace.derived(calls_of)
    rows = np.array([call.row for call in calls], np.int32)
    if not len(rows):
        return
    events, tree = trace.events, trace.calls
    made = trace.links.launches
    inside = events.times_of(rows)
    on_device = bool((events.covered(made, inside) > 0).any()) if len(made) else False
    slow = rows[tree.sizes[rows] >= operators]
    spent = trace.when(slow)
    if on_device or not spent or trace.window.share(spent) < share:
        return
    yield Finding(
        title=f"{len(slow)} calls of filters take {percent(trace.window.share(spent))} of the time in plain PyTorch, "
        "without the native library",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, slow),
        cause=f"Inside a call there are {int(np.median(tree.sizes[slow]))} operators; the native path has a few.",
        fix="Run `torchfx info`: it says why the library isn't used. Installing torchfx again with a C++ compiler "
        "builds it; TORCHFX_NATIVE=0 switches it off.",
        linked=True,
    )
