"""Work that is done only once, in the first step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import batch_waits, compiling
from torchwhy.trace.derived.step_differences import longer_in, operators_in, unhurried
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import DATALOADER, OPTIMIZER
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.overhead import BUFFERS, CODE_LOADING
from torchwhy.trace.meaning.runtime import ALLOCATION, COPY_CALL, MODULE_LOADING, WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.steps import Step, main_phase
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration, duration_ns, shortened

__all__ = ["first_step_cold", "has_cold_first_step"]

_WARM: Final = 3
"""Rounds after which a program is warm."""


@rule(
    "B11",
    "first-step-cold",
    source="1.3 times the median of the others; warm-up advice of torch.profiler's recipes",
    frees="all",
)
def first_step_cold(
    trace: Trace,
    *,
    ratio: float = 1.3,
    apart: float = 1.15,
    least_us: float = 20.0,
    gap_ratio: float = 10.0,
    gap_us: float = 100.0,
) -> Iterator[Finding]:
    """The first step is slower than the others.

    Sees: a first recorded step 1.3 times as long as the median of the others and 1.15 times as long as any of them;
    with a GPU, half of the difference must be the device's, idle or at work. If the others call less than half as many
    operators, calls that set something up must take half of the difference; their time is counted. Where the
    program has no (or no clear) steps: an annotation whose first operator comes ten times as late as the same one
    in its later rounds, by 100 us or more.

    Costs: set-up that happens once: memory, library heuristics, loading of kernels, worker processes, compilation. It
    distorts averages over few steps.

    Fix: three rounds of warm-up before measuring, or `schedule(wait=1, warmup=1, active=...)`; leave the first step
    out. If its number shows that three rounds preceded it, nothing else can be done; if it also shows no set-up, the
    finding is information. Rules about the usual step leave a first one that is three times as long as the others out
    by themselves.

    Known problems: a program whose first step really is larger (a longer first batch, an epoch's start) looks the same.
    With two recorded steps the other one is the only measure.
    """
    cold = _cold_step(trace)
    if cold is not None:
        late = _late_beginnings(trace, gap_ratio, min(gap_us, cold.excess / 5000))
        yield _finding(trace, cold, tuple(late[:2]))
        return
    for found in _late_beginnings(trace, gap_ratio, gap_us)[:1]:
        waited = found.time_us or 0.0
        yield Finding(
            title=f"The first {shortened(found.name)} waits {duration(waited)} for its first operator",
            most="low",
            confidence="medium",
            stretches=trace.when(found.rows),
            time_us=waited,
            window=trace.window,
            evidence=(found,),
            cause="Set-up of the first call: memory for workspaces, library heuristics, loading of kernels.",
            fix="Warm up (three rounds) before recording and leave the first round out of averages.",
        )


@dataclass(frozen=True)
class Cold:
    """A first step longer than the others.

    Attributes:
        own, rest: its duration, and the median of the others', nanoseconds.
        excess: how much of the difference is its own, nanoseconds.
        alike: whether the others call about as many operators.
        when: what the excess is a part of: the step, or where the others aren't alike, its set-up.
    """

    own: int
    rest: float
    excess: float
    alike: bool
    when: Intervals


def has_cold_first_step(trace: Trace) -> bool:
    """Whether the first step is slower than the others, so that first-step-cold reports what is slow in it."""
    return _cold_step(trace) is not None


def _cold_step(trace: Trace) -> Cold | None:
    ratio, apart, least_us = (first_step_cold.in_force[name] for name in ("ratio", "apart", "least_us"))
    steps = main_phase(trace.steps_found)
    own = [step.duration for step in steps]
    if len(steps) < 2 or own[0] < apart * max(own[1:]):
        return None
    rest = float(np.median(own[1:]))
    kept, work = unhurried(trace, steps), operators_in(trace, steps)
    excess = min(own[0] - rest, float(kept[0] - np.median(kept[1:])))
    if own[0] < ratio * rest or excess < max(least_us * 1000, (own[0] - rest) / 2):
        return None
    alike = bool(work[0] <= 2 * np.median(work[1:]))
    when = Intervals.union([steps[0].start], [steps[0].end])
    if not alike:
        when = _set_up(trace, steps[0])
        if when.total * 2 <= excess:
            return None
        excess = min(excess, when.total)
    return Cold(own[0], rest, excess, alike, when)


def _finding(trace: Trace, cold: Cold, late: tuple[Evidence, ...]) -> Finding:
    steps = main_phase(trace.steps_found)
    rows, times = longer_in(trace, steps[0], steps[1:])
    is_warm = (steps[0].number or 0) >= _WARM
    why = _why_cold(trace, steps[0])
    first, usual = duration_ns(cold.own), duration_ns(cold.rest)
    others = f"the others {usual} (median of {len(steps) - 1})" if len(steps) > 2 else f"the other one {usual}"
    fewer = (
        "" if cold.alike else " Only this set-up counts here: the other steps call less than half as many operators."
    )
    return Finding(
        title=f"The first step takes {first}, {others}",
        severity="info" if is_warm and not why else "",
        most="low" if is_warm else "medium",
        confidence="low" if not cold.alike else "high" if cold.own >= 3 * cold.rest else "medium",
        time_us=cold.excess / 1000,
        stretches=cold.when,
        window=trace.window,
        evidence=(*late, *evidence(trace, rows, times=times, note="longer than in the other steps"))
        or evidence(trace, [steps[0].row] if steps[0].row >= 0 else [])
        or (Evidence(steps[0].name, 1, cold.own / 1000, steps[0].start / 1000),),
        cause=(why or _without_reason(steps[0], is_warm=is_warm)) + fewer,
        fix="Leave it out of averages."
        if is_warm
        else "Warm up (three rounds) before recording, or schedule(wait=1, warmup=1, active=...).",
    )


def _late_beginnings(trace: Trace, ratio: float, least_us: float) -> list[Evidence]:
    """Annotations whose first round waits long for its first operator, the longest first."""
    events = trace.events
    notes = events.rows(Kind.ANNOTATION)
    operators = events.rows(Kind.OPERATOR)
    found: list[Evidence] = []
    if not len(operators):
        return found
    notes = notes[~events.are(DATALOADER | OPTIMIZER, notes)]
    names, counts = np.unique(events.name[notes], return_counts=True)
    called: dict[int, Int32] = {}  # the operators of a thread, which many names share
    for name in names[counts >= 3].tolist():
        same = notes[events.name[notes] == name]
        thread = int(events.lane[same[0]])
        if thread not in called:
            called[thread] = operators[events.lane[operators] == thread]
        lane = called[thread]
        if not len(lane):
            continue
        after = np.searchsorted(events.ts[lane], events.ts[same])
        inside = (after < len(lane)) & (events.ts[lane[np.minimum(after, len(lane) - 1)]] < events.end[same])
        if not inside.all():
            continue
        first = events.name[lane[after[0]]]
        alike = lane[events.name[lane] == first]  # a round that begins with something else is no measure
        after = np.searchsorted(events.ts[alike], events.ts[same])
        after = np.minimum(after, len(alike) - 1)
        inside = (events.ts[alike[after]] >= events.ts[same]) & (events.ts[alike[after]] < events.end[same])
        delay = (events.ts[alike[after]] - events.ts[same])[inside]
        if len(delay) < 2:
            continue
        rest = float(np.median(delay[1:]))
        if delay[0] - rest >= least_us * 1000 and delay[0] >= ratio * max(rest, 1.0):
            note = f"until its first operator; {duration_ns(rest)} until the same one in later rounds (median)"
            found += evidence(trace, same[:1], times=delay[:1], note=note)
    return sorted(found, key=lambda item: -(item.time_us or 0.0))


def _long_calls(trace: Trace) -> Int32:
    """Calls of the runtime that take a millisecond or more and don't wait for the device."""
    calls = trace.events.rows(Kind.RUNTIME)
    calls = calls[trace.events.dur[calls] >= 1_000_000]
    return calls[~trace.events.are(WAIT_FOR_DEVICE | COPY_CALL, calls)]


def _first_calls(trace: Trace, step: Step) -> str:
    """The runtime's longest calls of a step, such as "cudaFuncGetAttributes 995 ms", or ""."""
    events, rows = trace.events, _long_calls(trace)
    rows = rows[events.begin_in(rows, step.start, step.end)]
    names, which = np.unique(events.name[rows], return_inverse=True)
    spent = np.bincount(which, events.dur[rows].astype(np.float64), minlength=len(names))
    best = [i for i in np.argsort(-spent).tolist() if spent[i] * 10 >= spent.sum()][:3]
    return ", ".join(f"{events.texts[int(names[i])]} {duration_ns(spent[i])}" for i in best)


def _set_up(trace: Trace, step: Step) -> Intervals:
    """When a step sets something up: launches of a millisecond, allocation, loading, compilation."""
    events = trace.events
    rows = np.concatenate((_long_calls(trace), events.rows(Kind.OVERHEAD)))
    times = events.times_of(rows) | trace.derived(compiling)
    return times.clip(step.start, step.end)


def _why_cold(trace: Trace, step: Step) -> str:
    """The set-up that the first step shows; "" without any."""
    events = trace.events

    def within(rows: Int32) -> int:
        return events.times_of(rows).clip(step.start, step.end).total

    excess = max(step.duration, 1)
    reasons = {
        "torch.compile compiles in it": trace.derived(compiling).clip(step.start, step.end).total,
        "memory is allocated in it": within(events.of(ALLOCATION)),
        "kernels' code is loaded in it": within(events.of(CODE_LOADING | MODULE_LOADING)),
        "the profiler gets its buffers in it": within(events.of(BUFFERS)),
        "the first batch has to be waited for": trace.derived(batch_waits).clip(step.start, step.end).total,
    }
    seen = [text for text, time in reasons.items() if time > 0.2 * excess]
    calls = _first_calls(trace, step)
    if seen:
        first = " and ".join(seen)
        return f"{first[0].upper()}{first[1:]}.{f' Longest calls: {calls}.' if calls else ''}"
    return f"Calls that take this long only the first time: {calls}." if calls else ""


def _without_reason(step: Step, *, is_warm: bool) -> str:
    """What may have lengthened a first step that shows no set-up."""
    if is_warm:
        return (
            f"The program had run {step.number} steps before it, so it isn't cold: the start of the profiler, or "
            "another program, slowed it."
        )
    return "Set-up in the first calls: workspaces, library heuristics, loading of kernels, caches."
