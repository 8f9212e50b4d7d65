"""The kernels of the window with their names read and their operators, for several rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Evidence, Finding, severity_of
from torchwhy.rules.evidence import evidence
from torchwhy.trace.derived.kernels import kernel_names
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.kernels import KernelName, decode
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["Flags", "Kernels", "about_kernels", "caveat", "in_window", "kernels_of", "matters", "rank", "shown"]


@dataclass(frozen=True)
class Kernels:
    """Kernels that ran within the window, those that communicate left out: they also wait for other ranks.

    Attributes:
        rows: by start.
        spent: nanoseconds of each within the window.
        names: what each distinct name tells.
        which: index into `names` per row.
        operator: the innermost operator that launched each, or -1.
    """

    rows: Int32
    spent: Int64
    names: tuple[KernelName, ...]
    which: Int64
    operator: Int32

    @cached_property
    def total(self) -> int:
        """Their durations together, nanoseconds."""
        return int(self.spent.sum())

    def that(self, accept: Callable[[KernelName], bool]) -> Flags:
        """Which of them have a name that tells something."""
        chosen = np.array([accept(name) for name in self.names], np.bool_)
        found: Flags = chosen[self.which] if len(self.names) else np.zeros(0, np.bool_)
        return found

    def share(self, chosen: Flags) -> float:
        """The part of all kernels' time that some take."""
        return float(self.spent[chosen].sum()) / self.total if self.total else 0.0


def kernels_of(trace: Trace) -> Kernels:
    """Select them; `trace.derived(kernels_of)` does it once."""
    events, every = trace.events, trace.derived(kernel_names)
    chosen = in_window(trace, every.rows) & every.that(lambda name: name.operation != "communication")
    rows = every.rows[chosen]
    spent = np.minimum(events.end[rows], trace.window.end) - np.maximum(events.ts[rows], trace.window.start)
    return Kernels(rows, np.maximum(spent, 0), every.names, every.which[chosen], every.operator[chosen])


def in_window(trace: Trace, rows: Int32) -> Flags:
    """Whether device work ran within the window, at least in part."""
    events, window = trace.events, trace.window
    found: Flags = (events.ts[rows] < window.end) & (events.end[rows] > window.start)
    return found


def matters(trace: Trace, time_us: float, share: float = 0.01) -> bool:
    """Whether device time is enough of the window to speak of: of a device that waits nearly always nothing is."""
    return time_us > 0 and time_us >= share * trace.window.us


def rank(trace: Trace, time_us: float) -> str:
    """Severity of device time that could be shorter: low where the device mostly waits for the host's launches."""
    return severity_of(time_us / trace.window.us if trace.window.us else 0) if trace.derived(_queued) else "low"


def caveat(trace: Trace) -> str:
    """Say so where the device mostly waits for launches: faster kernels then change little."""
    if trace.derived(_queued):
        return ""
    window = trace.window
    busy = window.share(trace.gpu.busy.clip(window.start, window.end))
    return (
        f" But the device is busy for {percent(busy)} of the window only and waits for launches: the host comes first."
    )


def about_kernels(
    trace: Trace,
    rows: npt.ArrayLike,
    *,
    title: str,
    cause: str,
    fix: str,
    confidence: str = "high",
    linked: bool = True,
    at_most_us: float = inf,
    least: float = 0.01,
) -> Iterator[Finding]:
    """The finding that kernels could be shorter, unless their time is too little of the window to speak of.

    Args:
        trace, rows: the kernels.
        title, cause, fix, confidence, linked: the finding's; the cause goes on with `caveat`.
        at_most_us: what can be saved, where that is less than their time.
        least: the share of the window to speak of.
    """
    when = trace.when(rows)
    time_us = min(at_most_us, when.total / 1000)
    if matters(trace, time_us, least):
        yield Finding(
            title=title,
            severity=rank(trace, time_us),
            confidence=confidence,
            time_us=time_us,
            stretches=when,
            window=trace.window,
            evidence=shown(trace, rows),
            cause=cause + caveat(trace),
            fix=fix,
            linked=linked,
        )


def shown(trace: Trace, rows: npt.ArrayLike, *, limit: int = 5, note: str = "") -> tuple[Evidence, ...]:
    """Evidence for kernels, with what their names say as the note."""
    found = evidence(trace, rows, limit=limit, note=note)
    if note:
        return found
    chosen = np.asarray(rows, np.int32)
    kernels = chosen[trace.events.kind[chosen] == Kind.KERNEL]
    known = zip(map(trace.name, kernels.tolist()), trace.derived(kernel_names).of(kernels), strict=True)
    described = {text: name.description for text, name in known}
    return tuple(replace(one, note=described.get(one.name) or decode(one.name).description) for one in found)


def _queued(trace: Trace) -> bool:
    """Whether the device sets the pace where it works: for half of its time or more the next work waits already.

    How busy it is over the whole window doesn't tell: a step may prepare its data on the host first and then keep the
    device busy without a gap.
    """
    events, links = trace.events, trace.links
    at = np.flatnonzero(in_window(trace, links.work))
    if len(at) < 2:
        return True
    work, launch = links.work[at], links.launch[at]
    end = np.maximum.accumulate(events.end[work])[:-1]
    # Work whose launch isn't in the trace was launched before it began.
    waits = (launch[1:] < 0) | (events.ts[np.maximum(launch[1:], 0)] < end)
    spent = events.dur[work][:-1]
    return int(spent[waits].sum()) * 2 >= int(spent.sum())
