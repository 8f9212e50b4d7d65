"""Python between operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.python_lines import host_work, line_there, main_calls, python_lines
from torchwhy.rules.host.recurring_stretches import Recurring, recurring
from torchwhy.rules.host.tensor_loops import tensor_loops
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import (
    backward_calls,
    collections,
    host_during,
    otherwise_engaged,
    outer_operators,
    profiling,
)
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import Typical, steady_window, typical
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.compiler import COMPILED_CODE, REGION
from torchwhy.trace.meaning.frames import called_name
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration_ns, percent

__all__ = ["python_bound"]


@rule("B24", "python-bound", source="time between operators on the loop's thread", needs=("host",), frees="host")
def python_bound(trace: Trace, *, share: float = 0.4, operators: int = 50, long_us: float = 500.0) -> Iterator[Finding]:
    """Most of the time passes between operators, in Python.

    Sees: on the loop's thread, the gaps between one operator or call and the next, each shorter than 500 us: 40% of the
    window or more, over 50 operators at least. With a GPU, only gaps in the device's idle time count. With steps,
    longer gaps belong to between-steps-gap. Without steps, longer gaps count if they come back three times between the
    same operators; the others, such as set-up, are excluded from the window. Waits for batches, compilation, compiled
    code, captures of graphs, garbage collection and loops that other rules report (B17, B26) don't count, nor do the
    shorter gaps of traces with Python stacks, whose recording takes time just there.

    Costs: the interpreter, the model's Python code, and argument parsing, which run between operators; in long
    stretches the program's own computing, reading and writing.

    Fix: `torch.compile` replaces the Python of a model by one call; else fewer and larger operators, and less work per
    item in Python. Not for Python that logs, reads files or prepares data: that goes off the loop.

    Known problems: recording lengthens each of these gaps by a microsecond or two. What runs between the operators is
    known with Python stacks only.
    """
    outer = trace.derived(outer_operators)
    outer = outer[(trace.events.lane[outer] == trace.main_lane) & trace.in_steps(outer)]
    if len(outer) < operators:
        return
    between = _between(trace, outer)
    is_short = between.lengths < long_us * 1000
    short = Intervals(between.starts[is_short], between.ends[is_short])
    stretches = Intervals(between.starts[~is_short], between.ends[~is_short])
    if trace.steps_found:
        stretches = Intervals.union([], [])  # they are another rule's
    back = recurring(trace, stretches)
    long_, once = _lost(trace, back.times), stretches - back.times
    lost = long_ if trace.has_stacks else _lost(trace, short) | long_
    usual = typical(trace, lost, trace.derived(steady_window))
    lost, whole = usual.when, usual.share
    if len(once):  # set-up is no part of the window
        length = trace.window.end - trace.window.start - _lost(trace, once).total
        whole = lost.total / length if length > 0 else 0.0
    if not len(lost) or whole < share:
        return
    long_ = long_ & lost
    if 2 * long_.total > lost.total:
        yield _in_stretches(trace, usual, whole, long_, once, back)
    else:
        yield _in_between(trace, usual, whole, outer)


def _between(trace: Trace, outer: Int32) -> Intervals:
    """The gaps between operators and calls."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME)
    calls = calls[events.lane[calls] == trace.main_lane]
    others = events.rows(Kind.OPERATOR)  # other threads (backward): then the main one waits
    rows = np.concatenate((outer, calls, others, events.of(COMPILED_CODE)))
    return events.times_of(rows).gaps()


def _lost(trace: Trace, gaps: Intervals) -> Intervals:
    """The part of gaps that nothing else explains."""
    lost = gaps.clip(trace.derived(steady_window).start, trace.window.end)
    lost = lost - trace.derived(otherwise_engaged) - trace.derived(collections) - trace.derived(idle_exchanging)
    lost = lost - trace.derived(profiling)
    lost = lost - trace.derived(backward_calls)
    lost = lost - trace.derived(tensor_loops).spans - trace.derived(tensor_texts).spans
    return at_stake(trace, lost)


def _in_between(trace: Trace, usual: Typical, share: float, outer: Int32) -> Finding:
    """The finding where the operators follow each other slowly."""
    lost = usual.when
    inside = outer[trace.events.begin_in(outer, usual.window.start, usual.window.end)]
    each = duration_ns(lost.total / max(len(inside), 1))
    return Finding(
        title=f"{percent(share)} of the time passes between operators, {each} before each",
        confidence="medium",
        stretches=lost,
        window=usual.window,
        evidence=(
            *python_lines(trace, lost),
            Evidence("between operators", len(lost), lost.total / 1000, lost.longest_start / 1000),
            *evidence(trace, outer, limit=3, note="operators called"),
        ),
        cause="The operators are short, and the interpreter needs as long to get from one to the next.",
        fix="Compile larger parts (torch.compile with fewer graph breaks), and give each operator more data."
        if trace.events.any_of(REGION)
        else "Larger batches make each operator worth its call; torch.compile replaces a model's Python by one call.",
    )


def _in_stretches(
    trace: Trace, usual: Typical, share: float, long_: Intervals, once: Intervals, back: Recurring
) -> Finding:
    """The finding where the program does something else for long, again and again; what it does `once` is added."""
    longest = int(np.argmax(long_.lengths))
    rows, times = host_during(trace, int(long_.starts[longest]), int(long_.ends[longest]))
    frames = evidence(trace, rows, times=times, note="during the longest stretch") if trace.has_stacks else ()
    calls = main_calls(trace, long_)
    part = (trace.events.times_of(calls) & long_).total / long_.total if len(calls) else 0.0
    inside = f"{percent(part)} of that in {called_name(trace.name(int(calls[0])))}, " if part else ""
    alone = (
        f" {duration_ns(once.total)} in {counted(len(once), 'other long stretch', 'other long stretches')} that did "
        "not come back are not counted."
        if len(once)
        else ""
    )
    work = host_work(trace, long_, batch=True)
    return Finding(
        title=f"{percent(share)} of the time passes outside of operators, {inside}in "
        f"{counted(len(long_), 'stretch', 'stretches')} of {duration_ns(float(np.median(long_.lengths)))} (median)",
        confidence="medium",
        stretches=usual.when,
        window=usual.window,
        evidence=(*evidence(trace, calls), *python_lines(trace, long_), *frames, *back.evidence(trace, long_)),
        cause="In long stretches without operators Python, or native code that it calls, computes, reads or writes "
        "files, or waits for other threads, whose operators are recorded with profile_all_threads only. They come back "
        "between the same operators, so they are probably no set-up."
        + alone
        + line_there(trace, long_)
        + (work[1] if work else ""),
        fix=work[0].fix
        if work
        else (
            ""
            if trace.has_stacks
            else "See which code it is: put torch.profiler.record_function around its parts, or record Python stacks "
            "(torchwhy profile --stacks). "
        )
        + "Python loops over single numbers become operators on whole tensors; other work goes to another process or "
        "thread, unless it is the program's purpose.",
    )
