"""Caveats of a verdict."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.analysis.breakdown import parts_of
from torchwhy.analysis.names import PartName, VerdictKind
from torchwhy.trace.derived.idle import earlier_work, shown_from
from torchwhy.trace.derived.processor_time import BUSY, processor_time
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.steady_state import settled, shown_window
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, percent, sentence

__all__ = ["FEW_KERNELS", "caveats", "long_step", "slowed_by_stacks"]

_LONG: Final = 3.0
"""A step that takes this many times as long as the others does not represent them."""

FEW_KERNELS: Final = 10
"""Fewer kernels are too few for a verdict."""


_EARLIER: Final = 0.1
"""Work from before the recording that takes less of the window changes no share by much."""

_IN_PYTHON: Final = 0.1
"""If Python takes less of the window than this, the cost of its frames changes no verdict."""

_STACKS: Final = 0.3
"""Share of Python frames among the events from which recording them slows the host noticeably."""


def caveats(trace: Trace, kind: VerdictKind, slugs: frozenset[str]) -> tuple[str, ...]:
    """Return sentences that qualify a verdict.

    Args:
        trace: what was read.
        kind: of the verdict.
        slugs: the names of the rules that found something.
    """
    steps, found = trace.steps_found, []
    if not steps:
        found.append("No steps are marked, so this is about the whole recording, its start and end included.")
    elif steps[0].inferred:
        found.append(
            "Steps were inferred from what repeats; profiler.step() marks them, if the profiler has a schedule."
        )
    if len(steps) == 1:
        found.append("One step was recorded: others may differ.")
    if trace.captured is not None:
        found.append(trace.captured.sentence)
    found += _other_work(trace)
    found += _compile_log(trace)
    found += long_step(trace)
    found += _busy_machine(trace)
    kernels = len(trace.gpu.kernels)
    if trace.has_gpu and kernels < FEW_KERNELS:
        found.append(f"Only {counted(kernels, 'kernel')} in this recording: record a few whole steps to be sure.")
    if kind in (VerdictKind.OVERHEAD, VerdictKind.MIXED) and slowed_by_stacks(trace):
        found.append("Python stacks were recorded, which slows Python down: without them its share is smaller.")
    if kind == VerdictKind.COMMUNICATION and (trace.info.world_size or 0) > 1:
        found.append("One rank's communication includes waiting for the others: compare the traces of all ranks.")
    missing = trace.derived(recorded).without_operators
    found += [sentence(missing)] if missing else []
    if "clock-skew" in slugs:
        found.append("Clocks of host and device disagree in this file.")
    if "dropped-kernels" in slugs:
        found.append("Some GPU work is missing from this file.")
    return tuple(found)


def _other_work(trace: Trace) -> list[str]:
    """Which time the shares leave out because it wasn't recorded, or hold although it belongs to no step."""
    unshown = (trace.derived(shown_from) - trace.window.start) / 1000
    if unshown > 0:
        return [
            f"The first {duration(unshown)} are left out: the GPU's first work here was launched long before it began, "
            "so its work until then was not recorded."
        ]
    window = trace.derived(shown_window)
    earlier = trace.derived(earlier_work).clip(window.start, window.end)
    if window.share(earlier) < _EARLIER:
        return []
    of_none = ", and belongs to no step" if trace.steps_found else ""
    return [
        f"For {duration(earlier.total / 1000)} the GPU only does work that was launched before the recording{of_none}."
    ]


def _compile_log(trace: Trace) -> list[str]:
    """What limits the trust in the compiler's log, where there is one."""
    log = trace.compile_log
    if log is None:
        return []
    other = (
        f"The compiler's log is of process {log.process}, which the trace doesn't name: reasons are joined by the "
        "numbers of compilations, which agree if both ran the same program."
    )
    return [*([] if log.ours else [other]), *([log.problem] if log.problem else [])]


def _busy_machine(trace: Trace) -> list[str]:
    """Whether other programs took a significant part of the recorded thread's time."""
    spent = trace.derived(processor_time)
    if spent is None or spent.waited_us < BUSY * spent.wall_us:
        return []
    load, cores = spent.load, spent.cores
    loaded = f" (load average {load:.1f} on {counted(cores, 'core')})" if load and cores else ""
    return [
        f"The machine was busy{loaded}: for {min(spent.waited_us / spent.wall_us, 1):.0%} of this recording the "
        "program waited for a processor. That lengthens what the host does and may change the verdict: record again on "
        "an idle machine."
    ]


def long_step(trace: Trace) -> list[str]:
    """Shares of the window leave a cold first step out, or hold a step much longer than the others."""
    steps = trace.steps_found
    if len(steps) < 2:
        return []
    if trace.derived(settled) > trace.window.start:
        first = duration(steps[0].duration / 1000)
        return [f"The first step takes {first}, as cold ones do; the shares are those of the steps after it."]
    longest = max(steps, key=lambda step: step.duration)
    others = float(np.median([step.duration for step in steps if step is not longest])) / 1000
    if not longest.duration or longest.duration / 1000 < _LONG * others:
        return []
    part = longest.duration / sum(step.duration for step in steps)
    usual = f"the others {duration(others)} (median)" if len(steps) > 2 else f"the other {duration(others)}"
    return [
        f"One step takes {duration(longest.duration / 1000)}, {usual}: it is {percent(part)} of the recorded steps."
    ]


def slowed_by_stacks(trace: Trace) -> bool:
    """Whether recording Python frames made the time in Python, a part of the window, much longer."""
    window = trace.derived(shown_window)
    slowed = (PartName.PYTHON, PartName.WRAPPER)  # what calls compiled kernels is Python, too
    python = sum((when.total for name, _, when in trace.derived(parts_of) if name in slowed), 0)
    frames = len(trace.events.rows(Kind.PYTHON))
    return frames > _STACKS * max(len(trace), 1) and python >= _IN_PYTHON * (window.end - window.start)
