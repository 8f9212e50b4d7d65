"""What limits a program that runs on the processor alone: shares of its window, a word and a sentence."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.analysis.breakdown import Breakdown, calling, during, of_window, span_of
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import batch_waits, compiling
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP, ZERO_GRAD
from torchwhy.trace.meaning.compiler import COMPILED_CODE, COMPILING
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups
from torchwhy.wording import duration, enumeration, percent

__all__ = ["processor_verdict", "set_up", "unrecorded"]

_SHORT_NS: Final = 10_000
"""An operator whose own time is less, usually, is mostly the cost of calling it."""

_OVERHEAD: Final = 0.4
_STALL: Final = 0.2
_MOST: Final = 0.5
"""From which share of the window calls and Python, or something else, are the limit; of two stalls that reach the
second number, neither is unless it takes the third."""

_STALLS: Final = ("overhead-bound", "input-bound", "communication-bound", "compile-bound")

_TOLD: Final = ("data", "compiling", "communication", "waiting", "optimizer", "wrapper")
"""Parts that say what a program does without operators."""

_LABELS: Final = {
    "compute-bound": "longer operators",
    "overhead-bound": "short operators and the Python around them",
    "compiled": "code of torch.compile, with what calls it,",
    "input-bound": "waiting for the next batch",
    "communication-bound": "exchanging data with other ranks",
    "compile-bound": "compiling",
}


def processor_verdict(trace: Trace, parts: Breakdown) -> tuple[str, str]:
    """Return the verdict's kind and its sentence.

    Args:
        trace: what was read.
        parts: where its window went.
    """
    shares = _shares(trace, parts)
    kind = _kind(shares)
    return kind, _sentence(parts, kind, shares, _one_stretch(trace, parts))


def unrecorded(trace: Trace, parts: Breakdown) -> str:
    """Return why nothing can be said of a window in which no operator was recorded; "" where something can."""
    rows = trace.events.rows(Kind.OPERATOR, Kind.PYTHON)
    ts, end = trace.events.ts[rows], np.asarray(trace.events.end[rows])
    told, window = parts.share(*_TOLD), trace.derived(steady_window)
    if ((ts < window.end) & (end > window.start)).any() or told >= _STALL:
        return ""
    return (
        f"no operator was recorded in {span_of(parts)}: those of threads that the program starts are recorded with "
        "profile_all_threads only, so the program may compute all the time or not at all"
    )


def set_up(trace: Trace, parts: Breakdown) -> str:
    """Return why nothing can be said of a window that one long stretch without operators fills; "" where something can.

    Without steps nobody knows whether it belongs to the program's loop. Where the rest of the window looks the same, it
    doesn't matter.
    """
    gap, window = _one_stretch(trace, parts), parts.window_us
    if not gap:
        return ""
    shares = _shares(trace, parts)
    part = gap / window
    if _kind(shares) != "overhead-bound" or shares["overhead-bound"] - part >= _OVERHEAD * (1 - part):
        return ""
    rest = percent(shares["running"] / (1 - part))
    return (
        f"one stretch of {duration(gap)} without operators takes {percent(part)} of {span_of(parts)}, such as set-up, "
        f"imports or a checkpoint; in the rest operators run for {rest}: record several steps after warming up"
    )


def _one_stretch(trace: Trace, parts: Breakdown) -> float:
    """The length of a stretch without operators that decides a window without steps, microseconds; else 0."""
    gap = parts.longest_gap
    if not gap or trace.steps_found:
        return 0.0
    least = max(0.5 * parts.share("python"), 0.3) * parts.window_us
    return gap.duration_us if gap.duration_us >= least else 0.0


def _shares(trace: Trace, parts: Breakdown) -> dict[str, float]:
    """Shares of the window by what they would make the program, if they were the most.

    Besides: "short", a part of overhead; "between", the rest of it; "compiled", code of torch.compile, which may
    compute or only call: the kernels in it aren't recorded; "running", all of the operators' time.
    """
    length = max(1000 * parts.window_us, 1)
    loose = min(_loose(trace) / length, parts.share("optimizer"))
    running = parts.share("operators", "backward", "optimizer") - loose
    short = min(_short(trace) / length, running)
    between = parts.share("python", "waiting") + loose
    return {
        "compute-bound": running - short,
        "overhead-bound": between + short,
        "input-bound": parts.share("data"),
        "communication-bound": parts.share("communication"),
        "compile-bound": parts.share("compiling"),
        "short": short,
        "between": between,
        "compiled": parts.share("wrapper"),
        "running": running,
    }


def _loose(trace: Trace) -> int:
    """Time in the optimizer between its operators, nanoseconds."""
    inside = during(trace, OPTIMIZER_STEP | ZERO_GRAD) - calling(trace) - _elsewhere(trace)
    window = trace.derived(steady_window)
    return inside.clip(window.start, window.end).total


def _short(trace: Trace) -> int:
    """The own time of operators that is mostly the cost of calling them, nanoseconds; without data and compilation.

    Calls of one operator with tensors of the same shapes are judged together, by their median: on a busy machine some
    are held up for milliseconds. Without shapes each is judged alone, since one name may do little and much.
    """
    events, window = trace.events, trace.derived(steady_window)
    rows = events.rows(Kind.OPERATOR)
    rows = rows[events.begin_in(rows, window.start, window.end)]
    rows = rows[~events.are(COMPILED_CODE | COMPILING, rows)]
    rows = rows[events.covered(rows, _elsewhere(trace)) == 0]
    own = trace.calls.self_time[rows]
    usual: npt.NDArray[Any] = own
    if len(rows) and events.has("Input Dims"):
        alike = Groups(events.name[rows], events.text_ids("Input Dims", rows))
        usual = alike.median(own)[alike.which]
    return int(own[usual < _SHORT_NS].sum())


def _elsewhere(trace: Trace) -> Intervals:
    """Making batches, compiling and exchanging data, which have shares of their own."""
    return trace.derived(batch_waits) | trace.derived(compiling) | trace.derived(idle_exchanging)


def _kind(shares: dict[str, float]) -> str:
    stalls = {kind: shares[kind] for kind in _STALLS}
    worst = max(stalls, key=lambda kind: stalls[kind])
    if stalls[worst] < _MOST and sum(share >= _STALL for share in stalls.values()) > 1:
        return "mixed"
    if worst == "communication-bound" and _STALL <= stalls[worst] < shares["compute-bound"]:
        return "mixed"  # the rank that others wait for exchanges for long, too
    if stalls[worst] >= (_OVERHEAD if worst == "overhead-bound" else _STALL):
        return worst
    if shares["overhead-bound"] >= _STALL and shares["overhead-bound"] + shares["compiled"] >= _OVERHEAD:
        return "mixed"
    return "compute-bound" if shares["compute-bound"] + shares["compiled"] >= stalls[worst] else worst


def _sentence(parts: Breakdown, kind: str, shares: dict[str, float], gap: float) -> str:
    share = shares.get(kind, 0.0)
    amount = f"for {percent(share)} of {span_of(parts)} ({of_window(parts, share)})"
    computing, what = shares["running"], "operators run"
    if shares["compiled"] >= _STALL / 2:
        computing, what = computing + shares["compiled"], "operators and compiled code run"
    running = f"{what} for {percent(computing)}"
    one = f", {duration(gap)} of it in one stretch" if gap else ""
    if kind == "mixed":
        order = sorted(_LABELS, key=lambda one: -shares[one])
        named = [one for one in order if shares[one] >= _STALL / 2]
        told = enumeration(
            [f"{percent(shares[one])} goes to {_LABELS[one]}" for one in named[:1]]
            + [f"{percent(shares[one])} to {_LABELS[one]}" for one in named[1:]]
        )
        return f"No single limit: of {span_of(parts)} ({of_window(parts, 1.0)}), {told.rstrip(',')}."
    if kind == "overhead-bound" and shares["short"] >= 0.2 * share:
        return (
            f"The work is too small for its overhead: {percent(share)} of {span_of(parts)} ({of_window(parts, share)}) "
            "goes to operators of less than 10 us, mostly the cost of calling them, and to the Python around them; "
            f"longer operators run for {percent(shares['compute-bound'])}."
        )
    sentences = {
        "compute-bound": f"The processor is the limit: {running} of {span_of(parts)} "
        f"({of_window(parts, computing)}); no GPU work was recorded.",
        "overhead-bound": f"Python is the limit: for {percent(shares['between'])} of {span_of(parts)} "
        f"({of_window(parts, shares['between'])}) no operator runs{one}; {running}.",
        "input-bound": f"The program waits for data: {amount} it waits for the next batch; {running}.",
        "communication-bound": f"Exchanging data with other ranks is the limit: {amount} nothing else is done; "
        f"{running}.",
        "compile-bound": f"torch.compile was at work: {amount} it compiled; {running}.",
    }
    return sentences[kind]
