"""Compiled code in pieces: graph breaks, and functions PyTorch has given up on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.compiler.logged import SHOWN, BreakMet, breaks_met, last_guard, pieces, with_reason
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.rules.stake import most_saved
from torchwhy.trace.derived.compiled import broken_off, compiled_of, entry_overhead
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.communication import DISTRIBUTED_DATA_PARALLEL
from torchwhy.trace.meaning.compiler import RESUMED, break_place
from torchwhy.trace.meaning.frames import MODULE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, digits, duration_ns

__all__ = ["compiled_but_eager", "graph_breaks"]


LOST_FUSION: Final = (
    "The main cost is lost fusion: each piece writes its results to memory for the next one to read, and no "
    "kernel reaches across."
)
WHOLE: Final = (
    "move printing and logging out, keep values on the device instead of .item() or float(), replace an `if` on "
    "a tensor by torch.where or torch.cond; fullgraph=True then keeps it whole."
)
LIMITED: Final = 'it reached the limit of recompilations, or the stance "eager_on_recompile" forbids them.'


@rule(
    "E3",
    "graph-breaks",
    source="compiled regions inside compiled regions: only a break makes the rest of a function a separate region",
    frees="host",
)
def graph_breaks(trace: Trace, *, worth: float = 0.01) -> Iterator[Finding]:
    """A compiled function falls into several graphs.

    Sees: `Torch-Compiled Region: K/M` inside another region: the code after the break is entered as a separate
    function. Where Python frames were recorded, the names of the continuations contain file and line. Compiled
    functions called one after the other are no breaks. In traces without regions (PyTorch before 2.1), several
    `CompiledFunction` in one call of the program: below one label or module, or in one step.

    Costs: nothing is fused across the break, and results go through memory. Each piece needs a lookup, guards and a
    prologue. Only the additional entries are counted: a trace does not show what fusion would save.

    Fix: with the compiler's log (`torchwhy profile --compile-log`) each break has its line, PyTorch's reason and
    its hint, also where the whole function runs uncompiled for it. Without, TORCH_LOGS=graph_breaks names the reason,
    and fullgraph=True turns it into an error. Usual reasons: print or logging, .item() or an `if` on a tensor's value,
    a call into C code Dynamo doesn't know.

    Known problems: what fusion across the break would save isn't in a trace. In traces without regions, several
    functions compiled on their own look like pieces of one.
    """
    compiled, met = trace.derived(compiled_of), trace.derived(breaks_met)
    inner, outermost = compiled.outer >= 0, compiled.outer < 0
    inside = trace.in_steps(compiled.regions)
    nested, calls = compiled.regions[inner & inside], compiled.regions[outermost & inside]
    if not len(compiled.regions) and not met:
        yield from _in_pieces(trace)
    if not (met or (len(nested) and len(calls))):
        return
    events = trace.events
    nested = np.unique(np.concatenate((nested, *(one.rows for one in met)))).astype(np.int32)
    when = trace.derived(broken_off) | pieces(trace, nested)
    lost = at_stake(trace, when & trace.derived(entry_overhead))
    share = trace.window.share(lost)
    places = [(one.reason.line or f"compilation {one.reason.id}", len(one.rows)) for one in met] or _places(trace)
    evident = evidence(trace, nested, times=events.covered(nested, lost))
    broken = tuple(Evidence(f"break at {place}", count) for place, count in places[:5])
    ours = trace.compile_log is not None and trace.compile_log.ours
    at = f" at {places[0][0]}" if places and len(places[0][0]) < 50 else ""
    title = (
        f"{counted(len(calls), 'call')} of compiled code {'enters' if len(calls) == 1 else 'enter'} "
        f"{counted(len(nested), 'further region')}: graph breaks{at}"
        if len(nested)
        else f"{counted(len(met), 'graph break')} in what torch.compile was to compile{at}"
    )
    yield Finding(
        title=with_reason(title, met[0].reason.reason if met else ""),
        most="high" if share >= worth else "low",
        confidence="high" if ours or not met else "medium",
        stretches=lost,
        window=trace.window,
        evidence=(*(_reason(trace, one) for one in met[:SHOWN]), *evident) if met else (*broken, *evident),
        cause=(
            f"Dynamo could not capture something and starts a new graph after it, "
            f"{digits(len(nested) / len(calls), 2)} for each call. {LOST_FUSION} Entering the pieces takes "
            f"{duration_ns(lost.total)}."
            if len(nested) and len(calls)
            else f"Dynamo could not capture something and leaves it, or the whole function, uncompiled. {LOST_FUSION}"
        )
        + _first_reason(met)
        + _by_buckets(trace),
        fix=_hint(met)
        or ("Look at the lines above: " if places else "TORCH_LOGS=graph_breaks names the lines: ") + WHOLE,
        linked=ours if met else bool(places),
    )


def _reason(trace: Trace, one: BreakMet) -> Evidence:
    """A break as evidence: its line, PyTorch's reason, and what entering the pieces after it costs at most."""
    lost = at_stake(trace, pieces(trace, one.rows) & trace.derived(entry_overhead))
    code = f" at `{one.reason.code}`" if one.reason.code else ""
    uncompiled = "; the function runs uncompiled" if one.reason.skipped else ""
    return Evidence(
        one.reason.line or f"compilation {one.reason.id}",
        max(len(one.rows), 1),
        most_saved(trace, graph_breaks.frees, lost) / 1000,
        note=f"{one.reason.reason}{code}{uncompiled}",
        rows=one.rows,
    )


def _first_reason(met: tuple[BreakMet, ...]) -> str:
    """What PyTorch says of the break that costs most."""
    if not met:
        return ""
    first = met[0].reason
    detail = f" ({first.detail.rstrip('.')})" if first.detail else ""
    return f" PyTorch's reason{f' at {first.line}' if first.line else ''}: {first.reason.rstrip('.')}{detail}."


def _hint(met: tuple[BreakMet, ...]) -> str:
    """PyTorch's hint for the break that costs most; "" without one."""
    if not met or not met[0].reason.hint:
        return ""
    first = met[0].reason
    return (
        f"PyTorch's hint{f' for {first.line}' if first.line else ''}: {first.hint}. With fullgraph=True, a "
        "break that remains is an error that names its line."
    )


def _in_pieces(trace: Trace) -> Iterator[Finding]:
    """Several compiled functions in each call of the program, in traces that have no regions."""
    events, compiled = trace.events, trace.derived(compiled_of)
    functions = compiled.functions[trace.in_steps(compiled.functions)]
    caller = np.zeros(len(events), np.bool_)
    caller[events.rows(Kind.ANNOTATION)] = True
    caller[events.of(MODULE)] = True
    around = trace.frames.nearest(caller)[functions]
    calls, pieces = np.unique(around[around >= 0], return_counts=True)
    if not len(calls) or int(np.median(pieces)) < 2:
        return
    alike = bool(events.are(STEP, calls).all())
    within = functions[np.isin(around, calls[pieces > 1])]
    lost = at_stake(trace, events.times_of(within))
    yield Finding(
        title=f"Each of {counted(len(calls), 'call')} of compiled code runs in {int(np.median(pieces))} pieces: "
        "graph breaks",
        most="low",
        confidence="low" if alike else "medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, within),
        cause=f"Dynamo could not capture something and starts a new graph after it. {LOST_FUSION}"
        + _by_buckets(trace)
        + (" Functions compiled separately and called in one step would look the same." if alike else ""),
        fix="TORCH_LOGS=graph_breaks (before PyTorch 2.1 torch._dynamo.explain) names the lines: " + WHOLE,
    )


@rule(
    "E13",
    "compiled-but-eager",
    source="cache lookups that lead into no region; PyTorch's recompile_limit of 8 variants per function",
    frees="host",
)
def compiled_but_eager(trace: Trace, *, lookups: int = 3, share: float = 0.5) -> Iterator[Finding]:
    """A function that should be compiled runs as it was written.

    Sees: `TorchDynamo Cache Lookup` events that neither a compiled region nor a compilation follows, for at least
    half of all lookups of the window's last step, or of the trace where it has no steps.

    Costs: what compiling was to save, on every call, and the lookup besides.

    Fix: PyTorch stops compiling a function once it has too many variants (torch._dynamo.config.recompile_limit);
    TORCH_LOGS=recompiles names the guards that failed each time. Remove the reason rather than raise the limit.

    Known problems: without the compiler's log (`torchwhy profile --compile-log`), the limit of recompilations can't be
    distinguished from a function that was excluded on purpose.
    """
    compiled = trace.derived(compiled_of)
    events = trace.events
    known = compiled.lookups[~_last_of_thread(trace, compiled.lookups)]  # where those lead to can't be seen
    every, nowhere = known[trace.in_steps(known)], compiled.without_region
    nowhere = nowhere[trace.in_steps(nowhere)]
    since = 0
    if trace.steps_found and len(every):
        since = trace.steps_found[int(trace.step_of(every).max())].start
    lately, all_lately = nowhere[events.ts[nowhere] >= since], every[events.ts[every] >= since]
    if len(nowhere) < lookups or not len(lately) or len(lately) < share * len(all_lately):
        return
    steps = trace.steps_found
    spent = Intervals.union([s.start for s in steps], [s.end for s in steps])
    spent = spent if steps else Intervals.union([trace.window.start], [trace.window.end])
    lost = at_stake(trace, spent & Intervals.union(*_follows(trace, nowhere)))
    guard = last_guard(trace)
    yield Finding(
        title=f"{len(nowhere)} of {counted(len(every), 'call')} of compiled code find no variant that fits and "
        "run uncompiled",
        severity="medium",
        confidence="medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, nowhere),
        cause="No variant's guards hold, and PyTorch doesn't make another one: "
        + (f"it has met the limit of recompilations. {guard}" if guard else LIMITED),
        fix=("" if guard else "TORCH_LOGS=recompiles shows what varies from call to call. ")
        + "Pass varying Python numbers as tensors, mark "
        "varying sizes as dynamic, or split the function so that the part that varies stays outside.",
        linked=True,
    )


def _by_buckets(trace: Trace) -> str:
    """Say that DistributedDataParallel has its own reason to split a graph."""
    if not trace.events.any_of(DISTRIBUTED_DATA_PARALLEL):
        return ""
    return (
        " Under DistributedDataParallel some splits are on purpose, one graph per bucket, so that gradients are "
        "reduced during the backward pass (torch._dynamo.config.optimize_ddp)."
    )


def _last_of_thread(trace: Trace, rows: Int32) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of these rows, sorted by start, no other one on its thread follows."""
    last = np.zeros(len(rows), np.bool_)
    _, first = np.unique(trace.events.lane[rows][::-1], return_index=True)
    last[len(rows) - 1 - first] = True
    return last


def _follows(trace: Trace, lookups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From each of these lookups to the next one on any thread, or to the end."""
    ts = trace.events.ts[trace.derived(compiled_of).lookups]
    ends = np.append(ts, trace.span[1])[np.searchsorted(ts, trace.events.ts[lookups], "right")]
    return trace.events.ts[lookups], ends


def _places(trace: Trace) -> list[tuple[str, int]]:
    """Return "file.py:20 in forward" of every continuation in the Python frames, the most frequent first."""
    if not trace.has_stacks:
        return []
    found: dict[str, int] = {}
    rows = trace.events.of(RESUMED)
    for name in trace.events.name[rows].tolist():
        label = break_place(trace.events.texts[name])
        if label:
            found[label] = found.get(label, 0) + 1
    return sorted(found.items(), key=lambda item: -item[1])
