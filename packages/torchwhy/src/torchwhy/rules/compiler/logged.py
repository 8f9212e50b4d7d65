"""Rules about compiled code from the compiler's log, where it was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Evidence
from torchwhy.rules.stake import most_saved
from torchwhy.trace.compile_log.reasons import GraphBreak, GuardFailure
from torchwhy.trace.derived.compiled import Compilation, Compiled, compiled_of
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, shortened

__all__ = [
    "SHOWN",
    "BreakMet",
    "breaks_met",
    "compilations_as_evidence",
    "failed_guard",
    "guards_of",
    "last_guard",
    "pieces",
    "remedy",
    "with_reason",
    "without_cuda_graph",
]

SHOWN: Final = 10
"""Breaks or recompilations that a finding names."""

_REMEDIES: Final = {
    "size": "If the size of an input varies, say so before the first call (torch._dynamo.mark_dynamic or "
    "dynamic=True), or pad to few sizes.",
    "dtype": "Convert inputs to one dtype before the call, if the two variants are not intended.",
    "layout": "Give inputs the same strides at each call, for example with .contiguous().",
    "gradient": "Make all calls with gradients, or all without gradients; a variant for training and one for "
    "evaluation are no fault.",
    "length": "Keep lists and dicts that grow out of the compiled code, or give them the same length at each call.",
    "value": "Keep Python values that change out of the compiled code: pass numbers as tensors.",
    "object": "Pass the same module, function or object at each call.",
    "": "Keep what the guard names the same at each call.",
}
"""What to do about the subject of a guard (`GuardFailure.subject`)."""

REMEDIES_SHOWN: Final = 2

LONGEST_TITLE: Final = 120
ROOM: Final = 12
"""Characters of a title, at most, and of a reason in it, at least."""


@dataclass(frozen=True)
class BreakMet:
    """A graph break of the log.

    Attributes:
        reason: what the log says.
        rows: the regions of the window that begin after it; none where the function runs uncompiled.
    """

    reason: GraphBreak
    rows: Int32


def breaks_met(trace: Trace) -> tuple[BreakMet, ...]:
    """Return the log's breaks, those after which most of the window's regions begin first.

    A region inside another one belongs to the break of the compilation around it. Where nothing of a function came
    before its break, its rest is found by its name. Breaks of compilations that the window shows nothing of are left
    out, unless the function runs uncompiled for them: nothing of it can be seen then.
    """
    log, compiled = trace.compile_log, trace.derived(compiled_of)
    if log is None:
        return ()
    inside = trace.in_steps(compiled.regions)
    ran = {*compiled.region_ids(compiled.regions[inside])}
    found: dict[str, BreakMet] = {}
    for one in log.breaks:
        rows = compiled.regions[inside & _behind(compiled, one)]
        if not len(rows) and one.id not in ran:
            rests = {
                f.frame for f in log.frames.values() if f.resumed and f.frame > one.frame and _same(f.line, one.line)
            }
            rows = compiled.regions[inside & np.isin(compiled.frame, [*rests])]
        if len(rows) or one.skipped or one.id in ran:
            known = found.get(f"{one.line} {one.reason}")
            both = rows if known is None else np.union1d(known.rows, rows).astype(np.int32)
            found[f"{one.line} {one.reason}"] = BreakMet(one if known is None else known.reason, both)
    return tuple(sorted(found.values(), key=lambda one: -len(one.rows)))


def with_reason(title: str, reason: str) -> str:
    """Return a finding's title with a reason after it, as much as a title has room for."""
    room = LONGEST_TITLE - len(title) - 3
    return f"{title} ({shortened(reason, room)})" if reason and room > ROOM else title


def _behind(compiled: Compiled, one: GraphBreak) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which regions run directly inside a region of the compilation that broke."""
    outer = np.maximum(compiled.outer, 0)
    around = (compiled.frame[outer] == one.frame) & (compiled.version[outer] == one.version)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (compiled.outer >= 0) & around & (one.frame >= 0)
    return found


def _same(line: str, other: str) -> bool:
    """Whether two lines are of one function."""
    return line.partition("(")[0] == other.partition("(")[0] and line.partition("): ")[2] == other.partition("): ")[2]


def pieces(trace: Trace, regions: Int32) -> Intervals:
    """When these regions ran, and the lookups right before them."""
    compiled, events = trace.derived(compiled_of), trace.events
    if not len(regions):
        return events.times_of(regions)
    following = np.searchsorted(events.ts[compiled.regions], events.end[compiled.lookups])
    known = following < len(compiled.regions)
    before = compiled.lookups[known][np.isin(compiled.regions[following[known]], regions)]
    return events.times_of(regions) | events.times_of(before)


def guards_of(trace: Trace, ids: Iterable[str]) -> tuple[tuple[str, GuardFailure], ...]:
    """Return the guard that failed last before each of these compilations, where the log has it."""
    log = trace.compile_log
    known = ((id_, log.failures.get(id_)) for id_ in dict.fromkeys(ids)) if log is not None else ()
    return tuple((id_, failures[0]) for id_, failures in known if failures)


def remedy(trace: Trace, ids: Iterable[str]) -> str:
    """Say what to do about the guards that failed before these compilations, the most frequent subjects first.

    Without a log, the sentences name how to find out which guard failed, and the usual remedies.
    """
    subjects = Counter(failure.subject for _, failure in guards_of(trace, ids))
    if not subjects:
        return f"TORCH_LOGS=recompiles prints which guard failed. {_REMEDIES['size']} {_REMEDIES['value']}"
    return " ".join(_REMEDIES[subject] for subject, _ in subjects.most_common(REMEDIES_SHOWN))


def failed_guard(trace: Trace, ids: Iterable[str]) -> str:
    """Say which guards failed before these compilations, the most frequent one by name; "" where no log says."""
    found = guards_of(trace, ids)
    if not found:
        return ""
    often = Counter(_alike(failure) for _, failure in found)
    chosen, count = often.most_common(1)[0]
    first = next(failure for _, failure in found if _alike(failure) == chosen)
    line = f" ({_line_of(trace, found[0][0], first)})" if _line_of(trace, found[0][0], first) else ""
    others = len(often) - 1
    more = f", in {count} of {len(found)}" if others else ""
    return f"A guard of the compiled code failed{more}: {first.guard.rstrip('.')}{line}."


def _alike(failure: GuardFailure) -> str:
    """The subject of a guard, without the values that differ between variants."""
    return f"{failure.line}{failure.guard.partition(' == ')[0].partition('expected')[0]}"


def _line_of(trace: Trace, id_: str, failure: GuardFailure) -> str:
    """The line of the program that a guard protects, else where its function begins.

    PyTorch keeps only the end of the path in a guard's line; the function's line has the whole path.
    """
    frames = trace.compile_log.frames if trace.compile_log is not None else {}
    known = [frame.line for each in (id_, failure.variant) if (frame := frames.get(each)) is not None and frame.line]
    if not failure.line:
        return known[0] if known else ""
    end, _, rest = failure.line.partition("(")
    paths = [line.partition("(")[0] for line in known]
    return f"{next((path for path in paths if path.endswith(end)), end)}({rest}"


def compilations_as_evidence(
    trace: Trace, found: Iterable[Compilation], lost: Intervals, frees: str
) -> tuple[Evidence, ...]:
    """Return compilations with line, reason and time at stake as the log explains them, the longest first.

    () without a log, or if the log has no such event.
    """
    log = trace.compile_log
    spent: dict[str, list[Compilation]] = {}
    for one in found:
        spent.setdefault(one.id, []).append(one)
    shown = []
    for id_, compilations in spent.items():
        frame = log.frames.get(id_) if log is not None else None
        if log is None or frame is None or not id_:
            continue
        when = lost & Intervals.union([c.start for c in compilations], [c.end for c in compilations])
        guard = next(iter(log.failures.get(id_, ())), None)
        name = (_line_of(trace, id_, guard) if guard is not None else frame.line) or f"compilation {id_}"
        facts = [id_, f"failed guard of {guard.variant}: {guard.guard}" if guard is not None else ""]
        facts += ["the rest of it after a graph break"] if frame.resumed else []
        facts += [counted(frame.operators, "operator")] if guard is None else []
        shown.append(
            Evidence(
                name,
                len(compilations),
                most_saved(trace, frees, when) / 1000,
                compilations[0].start / 1000,
                note=", ".join(filter(None, facts)),
                rows=np.array([c.row for c in compilations], np.int32),
            )
        )
    return tuple(sorted(shown, key=lambda one: -(one.time_us or 0.0))[:SHOWN])


def last_guard(trace: Trace) -> str:
    """Say which function PyTorch gave up on and which guard failed last; "" where no log says."""
    log = trace.compile_log
    given_up = [one for one in log.frames.values() if one.gave_up] if log is not None else []
    if log is None or not given_up:
        return ""
    one = given_up[0]
    first = log.frames.get(f"{one.frame}/0")
    function = one.line or (first.line if first is not None else "")
    guards = guards_of(trace, [one.id])
    where = f"at {function} " if function else ""
    guard = f"The guard that failed last {where}is {guards[0][1].guard.rstrip('.')}" if guards else f"It is {function}"
    line = f" ({guards[0][1].line})" if guards and guards[0][1].line else ""
    more = f"; {counted(len(given_up) - 1, 'more function')} met the limit, too" if len(given_up) > 1 else ""
    return f"{guard}{line}{more}."


def without_cuda_graph(trace: Trace) -> str:
    """Say why compiled code of the window is not replayed as a CUDA graph; "" where no log says."""
    log, compiled = trace.compile_log, trace.derived(compiled_of)
    if log is None:
        return ""
    ran = dict.fromkeys(compiled.region_ids(compiled.regions[trace.in_steps(compiled.regions)]))
    skipped = [one for id_ in ran if (one := log.frames.get(id_)) is not None and one.without_cuda_graph]
    if not skipped:
        return ""
    first = skipped[0]
    many = f" ({first.id}, {first.line})" if first.line else f" ({first.id})"
    rest = f"; {counted(len(skipped) - 1, 'more compilation')} likewise" if len(skipped) > 1 else ""
    return f" PyTorch left CUDA graphs out: {first.without_cuda_graph.rstrip('.')}{many}{rest}."
