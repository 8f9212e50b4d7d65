"""Filters called one by one that could be called together: in a chain, or in a batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from _torchfx_rules.calls import Call, runs_of
from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["many_short_files", "native_dispatch_count"]


@rule(
    "G1",
    "native-dispatch-count",
    source="torchfx's operators: a chain of filters and gains is one call of one operator",
    frees="host",
)
def native_dispatch_count(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Filters of a chain are called one after the other.

    Sees: `wave | a | b`, where both are filters: torchfx records that `b` continues from `a`. Of filters called on
    tensors, two or more calls in a row on a signal of one shape, with coefficients of different shapes and nothing but
    views and gains between them; that needs recorded shapes.

    Costs: each call goes through the signal once more, and through Python and the dispatcher.

    Fix: join the filters first and pipe the signal into the chain: `chain = a | b | c`, then `wave | chain`. Such a
    chain is lowered to one call; `chain.explain(rate)` shows it.

    Known problems: filters with trainable coefficients, or whose output is used in between, must stay apart.
    """
    found = [chain for run in runs_of(trace) for chain in _chains(run)]
    if not found:
        return
    # One call of all would still take the time of the longest.
    lost = Intervals.union(
        [call.start for run in found for call in _shorter(run)], [call.end for run in found for call in _shorter(run)]
    ).clip(trace.window.start, trace.window.end)
    if not lost or trace.window.share(lost) < share:
        return
    rows = np.array([call.row for run in found for call in run], np.int32)
    longest = max(len(run) for run in found)
    yield Finding(
        title=f"{len(rows)} calls of filters where {len(found)} would do: up to {longest} in a row on one signal",
        confidence="medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause=f"The filters are applied one by one; all but the longest of each row take {duration_ns(lost.total)}, "
        "which is the most that one call can save.",
        fix="chain = first | second | third once, then wave | chain: filters and gains become one call.",
    )


@rule("G2", "many-short-files", source="calls of filters on short signals, one by one; eight in a row", frees="host")
def many_short_files(trace: Trace, *, calls: int = 8, call_us: float = 300.0, share: float = 0.05) -> Iterator[Finding]:
    """Filters are called on many short signals, one by one.

    Sees: eight or more calls of one operator in a row in a step, with a median below 300 microseconds, and the time
    between them; with a GPU only while it has no work. Where shapes were recorded, coefficients must be of one shape;
    one filter on many signals and many filters on one signal cannot be distinguished.

    Costs: 10 to 50 microseconds of Python and dispatch per call, as much as filtering a second of audio takes; on a GPU
    kernels too small to fill it.

    Fix: stack signals of equal length, or pad them to one, into a tensor (files, channels, time) and call once:
    filters take any leading dimensions.

    Known problems: signals that arrive one by one, as in a stream, can't be batched.
    """
    found = [run for run in runs_of(trace) if _files(run, calls, call_us)]
    if not found:
        return
    gaps = [(a.end, b.start) for run in found for a, b in pairwise(run)]
    # Longer pauses are the program's: reading the next file, say.
    usual = 3 * float(np.median([end - start for start, end in gaps]))
    short = [(start, end) for start, end in gaps if end - start <= usual]
    between = Intervals.union([start for start, _ in short], [end for _, end in short])
    between = between.clip(trace.window.start, trace.window.end)
    part = trace.window.share(at_stake(trace, between))
    if not part or part < share:
        return
    rows = np.array([call.row for run in found for call in run], np.int32)
    yield Finding(
        title=f"Filters are called {len(rows):,} times on short signals; {percent(part)} of the "
        "time passes between the calls",
        confidence="medium",
        stretches=between,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Each filter of each signal is a separate call, and Python takes a good part of the time between calls.",
        fix="Stack signals of equal length (or padded to it) into (files, channels, time), join the filters into one "
        "chain (a | b | c) before they are applied, and call it once.",
    )


def _chains(run: list[Call]) -> list[list[Call]]:
    """The calls of a run that filter one signal one after the other, by signal."""
    if not any(call.continues for call in run):
        return [chain] if (chain := _different(run)) else []
    chains: list[list[Call]] = []
    for call in run:
        if chains and call.continues:
            chains[-1].append(call)
        else:
            chains.append([call])
    return [chain for chain in chains if len(chain) > 1]


def _different(run: list[Call]) -> list[Call]:
    """The calls of a run, if they are different filters on signals of one shape."""
    if len(run) < 2 or not all(call.signal and call.coefficients for call in run):
        return []
    kinds = {(call.name, call.coefficients) for call in run}
    return run if len({call.signal for call in run}) == 1 and len(kinds) > 1 else []


def _shorter(run: list[Call]) -> list[Call]:
    longest = max(run, key=lambda call: call.end - call.start)
    return [call for call in run if call is not longest]


def _files(run: list[Call], calls: int, call_us: float) -> bool:
    if len(run) < calls or len({(call.name, call.coefficients) for call in run}) != 1:
        return False
    return float(np.median([call.end - call.start for call in run])) < 1000 * call_us
