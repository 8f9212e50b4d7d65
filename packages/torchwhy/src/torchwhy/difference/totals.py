"""Numbers of a step that aren't tied to a name: launches, waits, copies, busy and idle time, memory, compilation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.difference.costs import Side, copied_bytes
from torchwhy.difference.noise import MARGIN, Spread, differs
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.idle import closing_wait, profiler_overhead, shown_from
from torchwhy.trace.derived.launches import kernel_launches
from torchwhy.trace.file.columns import ABSENT, Floats, Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals

__all__ = ["Total", "totals_between"]


SMALL: Final = 10**6
"""A peak of memory below this many bytes isn't worth a line."""


@dataclass(frozen=True)
class Total:
    """One number on both sides.

    Attributes:
        name: such as "kernel launches".
        unit: "", "us" or "bytes"; of one step, except for the peak of memory.
        a, b: the values; None where a side didn't record it.
        judgement: "changed": by more than a hundredth and than the steps' own variation; "noise": not beyond that
            variation; "margin": by less than a hundredth; "" if a side has no time.
    """

    name: str
    unit: str
    a: float | None
    b: float | None
    judgement: str

    @property
    def changed(self) -> bool:
        """Whether the difference counts."""
        return self.judgement == "changed"


def totals_between(a: Side, b: Side) -> tuple[Total, ...]:
    """Compare both sides; what neither has is left out."""
    first, second = _steps(a), _steps(b)
    found = [_total(name, unit, first.get(name), second.get(name)) for name, unit in _UNITS.items()]
    peaks = [_peaks(side) for side in (a, b)]
    for name in ("peak of device memory", "peak of host memory"):
        before, after = peaks[0].get(name), peaks[1].get(name)
        found.append(Total(name, "bytes", before, after, _judgement(before, after, beyond_noise=True)))
    return tuple(total for total in found if total.a or total.b)


_UNITS = {
    "kernel launches": "",
    "kernels": "",
    "waits for the device": "",
    "time waiting for the device": "us",
    "copies": "",
    "copied bytes": "bytes",
    "host busy": "us",
    "device busy": "us",
    "device idle": "us",
    "compilation": "us",
    "compilations": "",
    "of them recompilations": "",
    "compiled regions": "",
}


def _steps(side: Side) -> dict[str, Floats]:
    """Each number in each step; what can't be known is missing."""
    trace, rounds = side.trace, side.rounds
    events, n = trace.events, len(rounds)
    found: dict[str, Floats] = {}
    compiled = trace.derived(compiled_of)
    found["compilation"] = compiled.compiling.overlap(rounds.starts, rounds.ends).astype(np.float64) / 1000
    found["compilations"] = _count(side, np.array([c.row for c in compiled.compilations], np.int32))
    again = [c.row for c in compiled.compilations if c.version > 0]
    found["of them recompilations"] = _count(side, np.array(again, np.int32))
    found["compiled regions"] = _count(side, compiled.regions)
    if not trace.has_gpu and not len(trace.links.launches):
        return found
    found["kernel launches"] = _count(side, trace.derived(kernel_launches))
    waits = events.of(WAIT_FOR_DEVICE)
    waits = waits[waits != trace.derived(closing_wait)]
    found["waits for the device"] = _count(side, waits)
    blocked = events.times_of(waits)
    found["time waiting for the device"] = blocked.overlap(rounds.starts, rounds.ends).astype(np.float64) / 1000
    if not trace.has_gpu:
        return found
    kind = events.kind[side.work]
    found["kernels"] = np.bincount(side.work_round[kind == Kind.KERNEL], minlength=n).astype(np.float64)
    found["copies"] = np.bincount(side.work_round[kind == Kind.MEMCPY], minlength=n).astype(np.float64)
    copied = np.bincount(side.work_round, copied_bytes(events, side.work), n).astype(np.float64)
    if copied.any() or not found["copies"].any():
        found["copied bytes"] = copied
    found["host busy"] = rounds.host / 1000 - found["time waiting for the device"]
    busy, idle = _busy_and_idle(side)
    found["device busy"], found["device idle"] = busy, idle
    return found


def _busy_and_idle(side: Side) -> tuple[Floats, Floats]:
    """Over the steps on the host; after the last one until its device work is done, since that began in it."""
    rounds, gpu = side.rounds, side.trace.gpu
    ends = rounds.ends.copy()
    if rounds.are_steps and len(side.work):
        ends[-1] = max(int(ends[-1]), int(side.trace.events.end[side.work].max()))
    busy = gpu.busy.overlap(rounds.starts, ends).astype(np.float64)
    start = side.trace.derived(shown_from)
    shown = Intervals.union(np.maximum(rounds.starts, start), np.maximum(ends, start))
    idle = (shown - gpu.busy - side.trace.derived(profiler_overhead)).overlap(rounds.starts, ends)
    return busy / 1000, idle.astype(np.float64) / 1000


def _count(side: Side, rows: Int32) -> Floats:
    inside = side.rounds.of(side.trace.events.ts[rows])
    return np.bincount(inside[inside >= 0], minlength=len(side.rounds)).astype(np.float64)


def _total(name: str, unit: str, a: Floats | None, b: Floats | None) -> Total:
    before, after = (None if values is None else float(values.mean()) for values in (a, b))
    beyond = a is None or b is None or bool(differs(Spread.of(a[None, :]), Spread.of(b[None, :]))[0])
    return Total(name, unit, before, after, _judgement(before, after, beyond_noise=beyond))


def _judgement(before: float | None, after: float | None, *, beyond_noise: bool) -> str:
    if before is None or after is None:
        return ""
    if not beyond_noise:
        return "noise"
    return "changed" if abs(after - before) > MARGIN * max(before, after) else "margin"


def _peaks(side: Side) -> dict[str, float]:
    """The most memory held at once within the steps, of the program's tensors."""
    events = side.trace.events
    rows = np.flatnonzero(events.kind == Kind.MEMORY).astype(np.int32)
    rows = rows[side.rounds.of(events.ts[rows]) >= 0]
    held, where = events.integers("Total Allocated", rows), events.integers("Device Type", rows)
    found = {}
    for name, chosen in (("peak of device memory", where > 0), ("peak of host memory", where == 0)):
        known = held[chosen & (held != ABSENT)]
        if len(known) and known.max() >= SMALL:
            found[name] = float(known.max())
    return found
