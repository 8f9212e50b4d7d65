"""Counts from a recording that was made for another purpose: those of one recorded step."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchwhy.counters.call_tree import facts_in
from torchwhy.counters.compiler import Compiled, breaks_in, known_compilations, note_on_uncompiled
from torchwhy.counters.counts import CopyTotal, Counts, Sync
from torchwhy.counters.recording import nested_regions
from torchwhy.trace.meaning.annotations import STEP, step_number
from torchwhy.trace.meaning.operators import PYTORCHS

__all__ = ["Recorded", "counts_from_trace"]

Key = str | tuple[str, str]
_WITHOUT_MEMORY = ("allocations, allocated_bytes: not in this recording, which was made without memory",)
_WITH_MEMORY = (
    "allocations, allocated_bytes: all that allocators handed out; count() leaves out scratch inside operators",
)
_DETACHED = (
    "operators: in a backward pass count() sees more aten::detach, and aten::add for add_, only because it watches"
)
_NO_SIZES = "copied_bytes, bytes_*: a trace does not show how large copies are"
_NO_DEVICE = "kernel_launches, syncs, copies, copied_bytes: a GPU was in use and not recorded"


@dataclass(frozen=True)
class Recorded:
    """One recorded window.

    Args:
        tree: `experimental_event_tree()` of its results. compiled: what was compiled meanwhile.
    """

    tree: Sequence[Any]
    compiled: Compiled


@dataclass(frozen=True)
class _Unit:
    """One step, or a whole window: the sums of its facts by metric and key."""

    name: str
    facts: dict[str, Counter[Key]] = field(default_factory=dict)

    def sum(self, metric: str) -> int:
        return sum(self.facts.get(metric, Counter()).values())


def counts_from_trace(
    windows: Sequence[Recorded], *, memory: bool, device: bool, device_in_use: bool, taken_in: dict[str, str]
) -> Counts:
    """Return the counts of one step; where steps differ those of the largest, and a note says so.

    Operators are those `count` sees, with three exceptions: those of higher order (`torch.cond`) appear as what they
    call, what `print` does with tensors is hidden from `count`, and autograd itself goes some other ways while `count`
    watches (more `aten::detach`, `aten::add` for `aten::add_`).

    Args:
        windows: what was recorded.
        memory: whether allocations were recorded. device: whether a device was.
        device_in_use: whether the program uses one.
        taken_in: `environment()` of the program.
    """
    units = [unit for window in windows for unit in _units(window.tree)]
    largest = {metric: max(units, key=lambda unit: unit.sum(metric), default=_Unit("")) for metric in _METRICS}
    found = {metric: unit.facts.get(metric, Counter()) for metric, unit in largest.items()}
    seen = device or not device_in_use
    return Counts(
        operators=_by_name(found["operators"]),
        native_calls=_by_name(found["native_calls"]),
        lines=_by_key(largest["operators"].facts.get("lines", Counter())),
        syncs=tuple(Sync(*key, times) for key, times in found["syncs"].items() if isinstance(key, tuple))
        if seen
        else None,
        copies={kind: CopyTotal(times, None) for kind, times in _by_name(found["copies"]).items()} if seen else None,
        allocations=found["allocations"].total() if memory else None,
        allocated_bytes=found["allocated_bytes"].total() if memory else None,
        flops=None,
        kernel_launches=found["kernel_launches"].total() if seen else None,
        dispatches=found["dispatches"].total(),
        **_compiler(windows),
        notes=tuple(_notes(units, largest, windows, memory, seen)),
        environment=taken_in,
    )


_METRICS = (
    *("operators", "native_calls", "dispatches", "kernel_launches", "syncs", "copies"),
    *("allocations", "allocated_bytes"),
)


def _by_name(found: Counter[Key]) -> dict[str, int]:
    return {str(key): times for key, times in found.items()}


def _by_key(found: Counter[Key]) -> dict[str, dict[str, int]]:
    lines: dict[str, dict[str, int]] = {}
    for key, times in found.items():
        if isinstance(key, tuple):
            lines.setdefault(key[0], {})[key[1]] = times
    return lines


def _units(tree: Sequence[Any]) -> list[_Unit]:
    """The steps of a window with their facts by time, threads together; without steps, all of it."""
    steps = sorted(_steps(tree), key=lambda step: int(step.start_time_ns))
    units = [_Unit(f"step {step_number(step.name)}") for step in steps] or [_Unit("")]
    starts = [step.start_time_ns for step in steps]
    for metric, key, amount, time in facts_in(tree):
        place = bisect_right(starts, time) - 1 if steps else 0
        if place >= 0 and (not steps or time < steps[place].end_time_ns):
            units[place].facts.setdefault(metric, Counter())[key] += amount
    return units


def _steps(tree: Iterable[Any]) -> Iterator[Any]:
    pending = list(tree)
    while pending:
        call = pending.pop()
        if call.tag.name == "TorchOp" and STEP.names(call.name):
            yield call
        elif not PYTORCHS.names(call.name):  # no step begins inside an operator, and most events lie there
            pending.extend(call.children)


def _compiler(windows: Sequence[Recorded]) -> dict[str, Any]:
    """What was compiled in all windows, and the breaks in code compiled earlier, each once."""
    frames = [frame for window in windows for frame in window.compiled.frames]
    compiled = windows if known_compilations() else ()  # else there are no regions
    regions = sorted({region for window in compiled for region in nested_regions(window.tree)})
    met = [found for window in windows for found in window.compiled.graph_breaks]
    return {
        "compilations": len(frames),
        "compiled_before": known_compilations() - len(frames),
        "graph_breaks": (*met, *breaks_in(regions, frames)),
        "recompiles": tuple(found for window in windows for found in window.compiled.recompiles),
    }


def _notes(
    units: Sequence[_Unit], largest: dict[str, _Unit], windows: Sequence[Recorded], memory: bool, seen: bool
) -> Iterator[str]:
    if any(not unit.name for unit in units):
        yield "no steps were recorded: these are the counts of the whole recording"
    for metric in _METRICS:
        yield from _differences(metric, largest[metric], units)
    if len(units) > 1 and any(window.compiled.frames or window.compiled.graph_breaks for window in windows):
        yield f"compilations, graph_breaks, recompiles: of all {len(units)} recorded steps together"
    yield from note_on_uncompiled([frame for window in windows for frame in window.compiled.frames])
    yield from _WITH_MEMORY if memory else _WITHOUT_MEMORY
    if any(unit.sum("backward") for unit in units):
        yield _DETACHED
    if not seen:
        yield _NO_DEVICE
    elif largest["copies"].sum("copies"):
        yield _NO_SIZES


def _differences(metric: str, largest: _Unit, units: Sequence[_Unit]) -> Iterator[str]:
    others = [unit for unit in units if unit is not largest]
    sums = {unit.sum(metric) for unit in others}
    if sums - {largest.sum(metric)}:
        low, high = min(sums), max(sums)
        rest = str(low) if low == high else f"{low} to {high}"
        yield f"{metric}: {largest.sum(metric)} in {largest.name}, {rest} in the others; the largest is kept"
    elif any(unit.facts.get(metric) != largest.facts.get(metric) for unit in others):
        yield f"{metric}: as many in each step but not the same ones; those of {largest.name} are kept"
