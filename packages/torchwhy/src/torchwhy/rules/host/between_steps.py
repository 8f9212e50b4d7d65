"""Time in which no operator of PyTorch runs, between and within steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.python_lines import (
    called_there,
    host_work,
    line_there,
    main_calls,
    place_of_calls,
    python_lines,
    spent_below,
)
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.gaps import Cause, idle_gaps
from torchwhy.trace.derived.host_activity import (
    backward_calls,
    collections,
    host_during,
    otherwise_engaged,
    profiling,
)
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.derived.launches import device_known
from torchwhy.trace.derived.processor_time import waited_share
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import Typical, steady_window, typical
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import DATALOADER, HOUSEKEEPING, STEP
from torchwhy.trace.meaning.frames import READING, SAVING
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.libraries import LIBRARY_CALL
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent, shortened

__all__ = ["between_steps_gap"]

HABIT: Final = 3
"""Work that is in at least this number of steps is regular, though a queue of the device may hide it in all but one."""


@rule(
    "B13",
    "between-steps-gap",
    source="TraceML's residual: 10% of the step outside of forward, backward and optimizer",
    needs=("operators",),
    frees="host",
)
def between_steps_gap(trace: Trace, *, share: float = 0.1, long_us: float = 500.0) -> Iterator[Finding]:
    """No operator of PyTorch runs for long, between or within steps.

    Sees: time between one step and the next; annotations named after housekeeping (log, checkpoint, metrics,
    validation); and stretches of 500 us or more of the main thread without operator, call or annotation. 10% of the
    window. With a GPU, half of both is enough, since only time counts that leaves it idle with an empty queue, for 125
    us or more at a time. Waiting for batches, compilation, captures of graphs, garbage collection, the profiler's own
    step and what the backward pass waits for are left out, and so are a cold first step and a single step that was held
    up.

    Costs: that time, in every round it happens.

    Fix: depends on the kind of work that recorded frames or samples of the stack show for half of that time or more.
    Logging, checkpoints and validation every N steps or in another thread; reading and decoding before the loop or in
    the DataLoader's workers. Where no kind is known, the place and the function that it calls are named.

    Known problems: the profiler doesn't see what Python does without stacks, nor native code that it calls past
    PyTorch's operators (NumPy, SciPy, an extension): that may be the program's very work. A thread that the
    operating system takes off its processor looks the same, so stretches count only at places where they are usual, and
    up to three times as much of the window is required where `torchwhy profile` notes that the thread waited for one.
    """
    events, steps = trace.events, trace.steps_found
    if not steps or trace.main_lane < 0 or not trace.derived(device_known):
        return
    if not trace.has_gpu and not len(events.rows(Kind.OPERATOR, Kind.RUNTIME, Kind.PYTHON)):
        return  # what computes are threads of the program's own, which weren't recorded
    if trace.has_gpu:
        share, long_us = share / 2, long_us / 2
    stretches = _elsewhere(trace, steps, int(long_us * 1000)) - trace.derived(otherwise_engaged)
    stretches = stretches - trace.derived(collections) - trace.derived(backward_calls) - trace.derived(profiling)
    stretches = stretches - trace.derived(library_calls)
    lost = stretches - trace.derived(idle_exchanging)
    if trace.has_gpu:
        lost = lost & trace.derived(idle_gaps).intervals(Cause.HOST, Cause.END) & trace.derived(idle_time)
        whole = lost.lengths * 2 >= long_us * 1000
        lost = Intervals(lost.starts[whole], lost.ends[whole])
    window = trace.derived(steady_window)
    taken = stretches.overlap([step.start for step in steps], [step.end for step in steps])
    if np.count_nonzero(taken >= long_us * 1000) >= min(HABIT, len(steps) / 2):
        inside = lost.clip(window.start, window.end)
        usual = Typical(inside, window, window.share(inside))
    else:
        usual = typical(trace, lost, window)
    lost = usual.when
    # Where the thread waits for a processor, it does so in these stretches as anywhere.
    if not len(lost) or usual.share < share * (1 + 2 * trace.derived(waited_share)):
        return
    longest = int(np.argmax(lost.lengths))
    rows, times = host_during(trace, int(lost.starts[longest]), int(lost.ends[longest]))
    idle = " and the device has no work" if trace.has_gpu else ""
    house = bool(events.are(HOUSEKEEPING, rows).any())
    calls = main_calls(trace, lost)
    inner = trace.has_stacks and len(rows) > 0 and 2 * int(times[0]) >= lost.total
    if inner:  # what the program waits in says more than what called it
        calls = rows[:1]
    if len(lost) == len(steps) == 1 and lost.starts[0] == steps[0].start and not len(rows) and not len(calls):
        return  # the recording begins with it: it may be the profiler's start
    work = host_work(trace, lost)
    where = f"; the longest stretch is {duration_ns(lost.lengths.max())}"
    if work and work[1]:
        where = f"; samples show {work[0].shows}"
    # The fix removes whole stretches; what it removes of those under which the device still worked lets the host get
    # ahead of the device.
    at_stake = _meeting(stretches, lost).clip(usual.window.start, usual.window.end)
    if len(calls):
        called = events.times_of(calls)
        # A call that mostly does so, or that saves, does little else that is wanted.
        if 2 * (called & lost).total >= called.total or events.are(SAVING, calls).all():
            at_stake |= called.clip(usual.window.start, usual.window.end)
        where = called_there(trace, lost, calls)
    seen = (
        *evidence(trace, calls),
        *python_lines(trace, lost),
        *evidence(trace, [] if len(calls) else rows, times=times, note="during the longest stretch"),
    )
    yield Finding(
        title=shortened(f"For {percent(usual.share)} of the time no PyTorch operator runs{idle}{where}", 120),
        confidence="medium",
        stretches=at_stake,
        window=usual.window,
        evidence=seen
        or (
            Evidence("no operator, call or annotation", len(lost), lost.total / 1000, int(lost.starts[longest]) / 1000),
        ),
        cause=(work[1][1:] if work and work[1] else _cause(trace, house=house, seen=len(seen) > 0))
        + _how_often(lost, steps)
        + place_of_calls(trace, calls)
        + line_there(trace, lost)
        + spent_below(trace, lost),
        fix=work[0].fix if work else _fix(trace, lost, house=house),
    )


def library_calls(trace: Trace) -> Intervals:
    """When objects of packages with a vocabulary computed, by recorded or sampled stacks; what they read isn't."""
    events, samples = trace.events, trace.derived(stack_samples)
    found = events.times_of(events.of(LIBRARY_CALL)) - events.times_of(events.of(READING))
    computes = np.array(
        [any(map(LIBRARY_CALL.names, stack)) and not any(map(READING.names, stack)) for stack in samples.stacks],
        np.bool_,
    )
    return found | samples.when(computes) if computes.any() else found


def _meeting(stretches: Intervals, lost: Intervals) -> Intervals:
    """The stretches in which some time is lost."""
    found = lost.overlap(stretches.starts, stretches.ends) > 0
    return Intervals(stretches.starts[found], stretches.ends[found])


def _cause(trace: Trace, *, house: bool, seen: bool) -> str:
    if house:
        return "The program's own annotations say so: it logs, saves or evaluates."
    if trace.has_stacks and seen:
        return "Python, or native code that it calls past PyTorch's operators; the frames in the evidence say which."
    return (
        "Python, or native code that it calls, computes, reads or writes files, prints, collects garbage, sleeps, or "
        "waits for its other threads (whose operators are recorded with profile_all_threads only); the profiler "
        "doesn't see it."
    )


def _how_often(lost: Intervals, steps: Sequence[Step]) -> str:
    """In how many of the steps it happens, "" for a few of them."""
    times = np.count_nonzero(lost.overlap([step.start for step in steps], [step.end for step in steps]))
    return (
        f" It is in {times} of {len(steps)} recorded steps." if len(steps) >= HABIT and 2 * times > len(steps) else ""
    )


def _fix(trace: Trace, lost: Intervals, *, house: bool) -> str:
    if house:
        return "Log, save and evaluate every N steps, or in another thread or process."
    move = "into the DataLoader's workers, another thread" if trace.events.any_of(DATALOADER) else "into another thread"
    if line_there(trace, lost):
        return (
            "Make that line cheaper or run it less often: once, before the loop, if the same comes out in each step; "
            f"every N steps if it is a log, a check or a picture. The rest can go {move}."
        )
    if trace.has_stacks:
        return (
            f"If it is no part of the work, move it off the loop, {move}. If it is, a profiler of native code (py-spy "
            "record --native) shows what takes the time."
        )
    return (
        "See which code it is: put torch.profiler.record_function around its parts, or record Python stacks (torchwhy "
        f"profile --stacks). What is no part of the work goes {move}, or is done every N-th step."
    )


def _in_place(trace: Trace, work: Int32, free: Intervals, least: int) -> Intervals:
    """The stretches of at least `least` nanoseconds that are usual at their place.

    A thread that is taken off its processor stands still anywhere; what the program does, it does at one place. A place
    is between calls of two names: a fifth of the stretches there are long (two at least, in several steps), or in half
    of the steps the n-th is. The more of the time the thread waited for a processor, the nearer to all it must be.
    """
    waited = trace.derived(waited_share)
    events, steps = trace.events, trace.steps_found
    ends = np.asarray(events.end[work])
    first, last = work[np.argsort(events.ts[work], kind="stable")], work[np.argsort(ends, kind="stable")]
    after = np.searchsorted(events.ts[first], free.ends).clip(0, len(work) - 1)
    before = np.searchsorted(np.sort(ends), free.starts).clip(0, len(work) - 1)
    between = events.name[last[before]] * np.int64(len(events.texts)) + events.name[first[after]]
    near = np.flatnonzero(np.isin(between, between[free.lengths >= least]))
    starts, ends, between = free.starts[near], free.ends[near], between[near]
    long_ = ends - starts >= least
    _, place = np.unique(between, return_inverse=True)
    in_step = place * (len(steps) + 1) + np.searchsorted([one.start for one in steps], starts, "right")
    _, nth = np.unique(place * np.int64(len(near) + 1) + _rank(in_step), return_inverse=True)
    enough = np.maximum((0.2 + 0.8 * waited) * np.bincount(place), min(2, len(steps)))
    often = np.bincount(place, long_) >= enough
    regular = (np.bincount(nth, long_) >= (0.5 + 0.5 * waited) * len(steps)) & (np.bincount(nth) > 1)
    kept = long_ & (often[place] | regular[nth])
    return Intervals(starts[kept], ends[kept])


def _rank(keys: Int64) -> Int64:
    """How many equal keys stand before each."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(begins, np.diff(np.append(begins, len(keys))))
    return found


def _elsewhere(trace: Trace, steps: Sequence[Step], least: int) -> Intervals:
    """When the main thread was in no operator, call or annotation, each stretch of at least `least` nanoseconds."""
    events, window = trace.events, trace.window
    rows = events.rows(Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME)
    step = events.are(STEP | HOUSEKEEPING, rows)
    inferred = np.isin(rows, [s.row for s in steps])
    # Annotations count by what is inside them, unless nothing is: then they say what is done, which is no riddle.
    hollow = (events.kind[rows] == Kind.ANNOTATION) & (trace.calls.sizes[rows] > 0)
    work = rows[~step & ~inferred & ~hollow]
    active = events.times_of(work)
    free = Intervals.union([min(s.start for s in steps)], [max(s.end for s in steps)]) - active
    free = free.clip(window.start, window.end)
    found = _in_place(trace, work, free, least) if len(work) else free
    house = events.of(HOUSEKEEPING)
    house = house[trace.in_steps(house) | (events.lane[house] == trace.main_lane)]
    return (found | events.times_of(house)).clip(window.start, window.end)
