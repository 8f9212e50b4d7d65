"""The limit of a program that runs on the processor alone: shares of its window, a word and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.analysis.breakdown import IN_PYTHON, Breakdown, calling, during, span_of
from torchwhy.analysis.limits import LIMITS, MOST, STALL, amount_of, no_single_limit
from torchwhy.analysis.names import PartName, VerdictKind
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import batch_waits, compiling
from torchwhy.trace.derived.recorded import recorded as what_was_recorded
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP, ZERO_GRAD
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.short_operators import short_operators
from torchwhy.wording import duration, percent

__all__ = ["processor_verdict", "set_up", "unrecorded"]

_WITHOUT_OPERATORS: Final = (
    PartName.DATA,
    PartName.COMPILING,
    PartName.COMMUNICATION,
    PartName.WAITING,
    PartName.OPTIMIZER,
    PartName.WRAPPER,
)
"""Parts that say what a program does without operators."""

_LABELS: Final = {
    VerdictKind.COMPUTE: "longer operators",
    VerdictKind.OVERHEAD: "short operators and the Python around them",
    VerdictKind.INPUT: "waiting for the next batch",
    VerdictKind.COMMUNICATION: "exchanging data with other ranks",
    VerdictKind.COMPILE: "compiling",
}
_COMPILED_LABEL: Final = "code of torch.compile and what calls it"


@dataclass(frozen=True)
class _Shares:
    """Shares of the window.

    Attributes:
        computing: operators that are not short.
        stalls: by what they would make the program, if they were the most.
        short: operators that are mostly the cost of calling them; a part of overhead.
        between: the rest of overhead.
        compiled: code of torch.compile, which may compute or only call: the kernels in it aren't recorded.
        running: all operators.
    """

    computing: float
    stalls: dict[VerdictKind, float]
    short: float
    between: float
    compiled: float
    running: float

    @property
    def overhead(self) -> float:
        return self.stalls[VerdictKind.OVERHEAD]


def processor_verdict(trace: Trace, parts: Breakdown) -> tuple[VerdictKind, str]:
    """Return the verdict's kind and its sentence.

    Args:
        trace: what was read.
        parts: where its window went.
    """
    shares = _shares(trace, parts)
    kind = _processor_limit(shares)
    return kind, _processor_sentence(parts, kind, shares, _one_stretch(trace, parts))


def unrecorded(trace: Trace, parts: Breakdown) -> str:
    """Return why nothing can be said of a window in which no operator was recorded; "" where something can."""
    rows = trace.events.rows(Kind.OPERATOR, Kind.PYTHON)
    ts, end = trace.events.ts[rows], np.asarray(trace.events.end[rows])
    recorded, window = parts.share(*_WITHOUT_OPERATORS), trace.derived(steady_window)
    if ((ts < window.end) & (end > window.start)).any() or recorded >= STALL:
        return ""
    lacks = trace.derived(what_was_recorded).without_operators if trace.info.recorder else ""
    if lacks:
        return lacks
    return (
        f"no operator was recorded in {span_of(parts)}: those of threads that the program starts are recorded with "
        "profile_all_threads only, so the program may compute all the time or not at all"
    )


def set_up(trace: Trace, parts: Breakdown) -> str:
    """Return why nothing can be said of a window that one long stretch without operators fills; "" where something can.

    Without steps it may or may not belong to the program's loop. Where the rest of the window looks the same, it
    doesn't matter.
    """
    gap, window = _one_stretch(trace, parts), parts.window_us
    if not gap:
        return ""
    shares = _shares(trace, parts)
    part = gap / window
    if _processor_limit(shares) != VerdictKind.OVERHEAD or shares.overhead - part >= LIMITS[VerdictKind.OVERHEAD] * (
        1 - part
    ):
        return ""
    rest = percent(shares.running / (1 - part))
    return (
        f"one stretch of {duration(gap)} without operators takes {percent(part)} of {span_of(parts)}, such as set-up, "
        f"imports or a checkpoint; in the rest operators run for {rest}: record several steps after warming up"
    )


def _one_stretch(trace: Trace, parts: Breakdown) -> float:
    """The length of a stretch without operators that decides a window without steps, microseconds; else 0."""
    gap = parts.longest_gap
    if not gap or trace.steps_found:
        return 0.0
    least = max(0.5 * parts.share(PartName.PYTHON), 0.3) * parts.window_us
    return gap.duration_us if gap.duration_us >= least else 0.0


def _shares(trace: Trace, parts: Breakdown) -> _Shares:
    length = max(1000 * parts.window_us, 1)
    loose = min(_loose(trace) / length, parts.share(PartName.OPTIMIZER))
    running = parts.share(PartName.OPERATORS, PartName.BACKWARD, PartName.OPTIMIZER) - loose
    short = min(int(trace.calls.self_time[short_operators(trace)].sum()) / length, running)
    between = parts.share(PartName.PYTHON, PartName.WAITING) + loose
    stalls = {
        VerdictKind.OVERHEAD: between + short,
        VerdictKind.INPUT: parts.share(PartName.DATA),
        VerdictKind.COMMUNICATION: parts.share(PartName.COMMUNICATION),
        VerdictKind.COMPILE: parts.share(PartName.COMPILING),
    }
    return _Shares(running - short, stalls, short, between, parts.share(PartName.WRAPPER), running)


def _loose(trace: Trace) -> int:
    """Time in the optimizer between its operators, nanoseconds."""
    inside = during(trace, OPTIMIZER_STEP | ZERO_GRAD) - calling(trace) - _elsewhere(trace)
    window = trace.derived(steady_window)
    return inside.clip(window.start, window.end).total


def _elsewhere(trace: Trace) -> Intervals:
    """Making batches, compiling and exchanging data, which have separate shares."""
    return trace.derived(batch_waits) | trace.derived(compiling) | trace.derived(idle_exchanging)


def _processor_limit(shares: _Shares) -> VerdictKind:
    stalls, computing, compiled = shares.stalls, shares.computing, shares.compiled
    worst = max(stalls, key=lambda kind: stalls[kind])
    if stalls[worst] < MOST and sum(share >= STALL for share in stalls.values()) > 1:
        return VerdictKind.MIXED
    if worst == VerdictKind.COMMUNICATION and STALL <= stalls[worst] < computing:
        return VerdictKind.MIXED  # the rank that others wait for exchanges for long, too
    if stalls[worst] >= LIMITS[worst]:
        return worst
    if shares.overhead >= STALL and shares.overhead + compiled >= LIMITS[VerdictKind.OVERHEAD]:
        return VerdictKind.MIXED
    return VerdictKind.COMPUTE if computing + compiled >= stalls[worst] else worst


def _processor_sentence(parts: Breakdown, kind: VerdictKind, shares: _Shares, gap: float) -> str:
    share = shares.stalls.get(kind, 0.0)
    amount = f"for {amount_of(parts, share)}"
    computing, running = shares.running, "operators run"
    if shares.compiled >= STALL / 2:
        computing, running = computing + shares.compiled, "operators and compiled code run"
    run_for, running = f"{running} for", f"{running} for {percent(computing)}"
    one = f", {duration(gap)} of it in one stretch" if gap else ""
    if kind == VerdictKind.MIXED:
        return _mixed_sentence(parts, shares)
    if kind == VerdictKind.OVERHEAD and shares.short >= 0.2 * share:
        return (
            f"The work is too small for its overhead: {amount_of(parts, share)} goes to operators of less than 10 us "
            f"and to the Python around them; longer operators run for {percent(shares.computing)}."
        )
    in_python = any(part.label == IN_PYTHON for part in parts.parts)
    between = "Python" if in_python else "The time between operators"
    sentences = {
        VerdictKind.COMPUTE: f"The processor is the limit: {run_for} {amount_of(parts, computing)}; "
        "no GPU work was recorded.",
        VerdictKind.OVERHEAD: f"{between} is the limit: for {amount_of(parts, shares.between)} no operator runs{one}; "
        f"{running}.",
        VerdictKind.INPUT: f"The program waits for data: {amount} it waits for the next batch; {running}.",
        VerdictKind.COMMUNICATION: f"Exchanging data with other ranks is the limit: {amount} the program does that "
        f"and runs no operator; {running}.",
        VerdictKind.COMPILE: f"torch.compile was active: {amount} it compiled; {running}.",
    }
    return sentences[kind]


def _mixed_sentence(parts: Breakdown, shares: _Shares) -> str:
    named = {
        _LABELS[VerdictKind.COMPUTE]: shares.computing,
        _LABELS[VerdictKind.OVERHEAD]: shares.overhead,
        _COMPILED_LABEL: shares.compiled,
        **{_LABELS[kind]: share for kind, share in shares.stalls.items() if kind != VerdictKind.OVERHEAD},
    }
    first, *others = sorted(
        ((label, share) for label, share in named.items() if share >= STALL / 2), key=lambda one: -one[1]
    )
    amounts = [f"{percent(first[1])} goes to {first[0]}", *(f"{percent(share)} to {label}" for label, share in others)]
    return f"{no_single_limit(parts, '', amounts)}."
