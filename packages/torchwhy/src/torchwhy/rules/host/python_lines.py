"""Which lines of Python the time between operators belongs to, where stacks were recorded."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Evidence
from torchwhy.rules.evidence import most_first
from torchwhy.trace.derived.host_timeline import HostTimeline
from torchwhy.trace.derived.ownership import own_frames
from torchwhy.trace.derived.stack_samples import LEAST, sampled_line, stack_samples
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import (
    INSIDE_PYTORCH,
    JOINS_TO_ITSELF,
    LISTING,
    LOGGING,
    LOOKS_UP_ROWS,
    LOOPS,
    MAKES_ARRAY,
    MAKING_TENSORS,
    READING,
    SAVING,
    SEARCHES,
    TAKES_LOCK,
    WRAPPER_FRAME,
    called_name,
    code_of,
    line_of,
    short_frame,
    without_line,
)
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import enumeration, percent

__all__ = [
    "advice_on_calls",
    "advice_on_frames",
    "advice_on_line",
    "advice_on_waits",
    "called_there",
    "library_there",
    "line_there",
    "main_calls",
    "place_of_calls",
    "python_lines",
    "spent_below",
]

LONG_NAME: Final = 40
"""Only the module and the function are shown of a function's name longer than this."""

_FROM_LISTS: Final = (
    "torch.tensor reads lists number by number: keep the data in NumPy arrays or tensors (torch.from_numpy, np.stack, "
    "torch.stack), converted once before the loop or in a DataLoader's workers."
)

_ADVICE: Final = (
    (MAKING_TENSORS, _FROM_LISTS),
    (SAVING, "Save every N steps, or in another thread or process."),
    (READING, "Read and decode once before the loop, or in a Dataset with DataLoader(num_workers=4)."),
    (
        LISTING,
        "All numbers of a tensor become Python's own or text there. For a log, compute means on the whole tensor and "
        "write them every N steps; to send or store all numbers, take the bytes of the array "
        "(tensor.numpy().tobytes(), np.save).",
    ),
    (LOGGING, "Log every N steps, and fewer numbers: means made on whole tensors, not all their values."),
)


def python_lines(trace: Trace, when: Intervals, limit: int = 3) -> tuple[Evidence, ...]:
    """The functions of the program in which its loop's thread spent these stretches, the most time first.

    A call into a library counts for the line of the program that made it. Without Python stacks samples of them count,
    where there are any.
    """
    if not len(when):
        return ()
    if not trace.has_stacks:
        return _sampled_lines(trace, when, limit)
    events = trace.events
    _, rows, starts, ends = HostTimeline.of(events, trace.frames, trace.main_lane).pieces(when.starts, when.ends)
    own = np.where((rows >= 0) & (ends > starts), trace.derived(own_frames)[rows], -1)
    called = (events.kind[rows] != Kind.PYTHON)[own >= 0]
    rows, starts, ends = own[own >= 0], starts[own >= 0], ends[own >= 0]
    names, which = np.unique(events.name[rows], return_inverse=True)
    spent = np.bincount(which, (ends - starts).astype(np.float64), minlength=len(names))
    texts = [events.texts[int(name)] for name in names]
    samples = trace.derived(stack_samples)
    seen = Counter(samples.own[i] for i in samples.inside(when).tolist())
    found = []
    for i in most_first(spent, texts)[:limit]:
        mine = which == i
        alone = not called[mine].any()
        found.append(
            Evidence(
                _line_seen(texts[i], seen),
                len(np.unique(rows[mine])),
                float(spent[i]) / 1000,
                int(starts[mine][np.argmax((ends - starts)[mine])]) / 1000,
                trace.lane(int(rows[mine][0])).label,
                note="Python between operators" if alone else "Python and the operators it calls",
                rows=np.unique(rows[mine]).astype(np.int32),
            )
        )
    return tuple(found)


def _line_seen(function: str, seen: Counter[str]) -> str:
    """A function with the line at which most samples of it were taken: the profiler notes where it begins."""
    lines = [
        line for line, count in seen.most_common() if count >= LEAST and without_line(line) == without_line(function)
    ]
    return lines[0] if lines else function


def _sampled_lines(trace: Trace, when: Intervals, limit: int) -> tuple[Evidence, ...]:
    """The lines of the program that were seen there, each with its part of that time."""
    samples = trace.derived(stack_samples)
    seen = Counter(samples.inside(when).tolist())
    lines: Counter[str] = Counter()
    for i, count in seen.items():
        lines[samples.own[i]] += count
    return tuple(
        Evidence(
            line_of(line),
            count,
            when.total / 1000 * count / seen.total(),
            when.longest_start / 1000,
            stack=(line,),
            note="samples of Python there",
        )
        for line, count in lines.most_common(limit)
        if line and count >= LEAST
    )


def main_calls(trace: Trace, when: Intervals, *, least: float = 0.5) -> Int32:
    """The calls of one function that lines of the program make, and in which half of these stretches passes or more.

    Returns:
        Rows of frames; none where no function stands out, and none without Python stacks.
    """
    none = np.empty(0, np.int32)
    if not trace.has_stacks or not len(when):
        return none
    events, own, parent = trace.events, trace.derived(own_frames), trace.frames.parent
    _, rows, starts, ends = HostTimeline.of(events, trace.frames, trace.main_lane).pieces(when.starts, when.ends)
    made = np.flatnonzero((parent >= 0) & (events.kind == Kind.PYTHON))
    made = made[(own[made] != made) & (own[parent[made]] == parent[made])]
    is_call = np.zeros(len(events), np.bool_)
    is_call[made] = True
    calls = np.where(rows >= 0, trace.frames.nearest(is_call)[rows], -1)
    inside = (calls >= 0) & (own[rows] == parent[calls])
    calls, spent = calls[inside], (ends - starts)[inside].astype(np.float64)
    if not len(calls):
        return none
    enough = least * when.total
    found = _hottest(trace, calls, spent, enough)
    while len(found) and WRAPPER_FRAME.names(trace.name(int(found[0]))):
        inner = np.concatenate([trace.frames.children(int(row)) for row in found])
        inner = inner[events.kind[inner] == Kind.PYTHON]
        found = _hottest(trace, inner, when.overlap(events.ts[inner], events.end[inner]), enough)
    return found


def _hottest(trace: Trace, calls: Int32, spent: npt.NDArray[np.number], enough: float) -> Int32:
    """The calls of the function that takes the most time, if that is enough; else none."""
    if not len(calls):
        return np.empty(0, np.int32)
    which = np.unique(trace.events.name[calls], return_inverse=True)[1].reshape(-1)
    total = np.bincount(which, spent)
    best = int(total.argmax())
    return np.unique(calls[which == best] if total[best] >= enough else calls[:0]).astype(np.int32)


def advice_on_frames(trace: Trace, when: Intervals) -> str:
    """What to do about what Python does during some stretches: "" unless half of them passes in known frames."""
    return next((text for meaning, text in _ADVICE if 2 * _in_frames(trace, meaning, when) >= when.total > 0), "")


def place_of_calls(trace: Trace, calls: Int32) -> str:
    """A sentence on the line of the program that calls a function, or ""."""
    if not len(calls):
        return ""
    parent = int(trace.frames.parent[calls[0]])
    own = int(trace.derived(own_frames)[parent]) if parent >= 0 else -1
    if own < 0 or own == calls[0]:
        return ""
    return f" {called_name(trace.name(int(calls[0])))} is called in {line_of(trace.name(own))}."


def called_there(trace: Trace, when: Intervals, calls: Int32) -> str:
    """Which part of some stretches passes in calls of one function: ", 57% of that in json.dumps"; "" without calls."""
    if not len(calls):
        return ""
    name = called_name(trace.name(int(calls[0])))
    name = name if len(name) <= LONG_NAME else ".".join(name.split(".")[-2:])
    return f", {percent((trace.events.times_of(calls) & when).total / when.total)} of that in {name}"


def _in_frames(trace: Trace, meaning: Meaning, when: Intervals) -> int:
    """How long the loop's thread is in frames of a meaning during some stretches, nanoseconds."""
    rows = trace.events.of(meaning)
    return (trace.events.times_of(rows[trace.events.lane[rows] == trace.main_lane]) & when).total


def line_there(trace: Trace, when: Intervals) -> str:
    """A sentence on the line of the program that most samples show during some stretches, or ""."""
    line, source = sampled_line(trace, when)
    return f" Most samples taken there show {line}: {source}" if source else ""


def library_there(trace: Trace, when: Intervals) -> bool:
    """Whether most samples during some stretches show Python code of a library that isn't PyTorch."""
    samples = trace.derived(stack_samples)
    inside = [samples.stacks[i][0] for i in samples.inside(when).tolist()]
    library = [frame for frame in inside if not code_of(frame) and not frame.startswith(INSIDE_PYTORCH)]
    return len(library) >= LEAST and 2 * len(library) > len(inside)


def spent_below(trace: Trace, when: Intervals) -> str:
    """A sentence on the functions that samples show below the line that most of them show, or ""."""
    line, _ = sampled_line(trace, when)
    samples = trace.derived(stack_samples)
    inner = Counter(samples.stacks[i][0] for i in samples.inside(when).tolist() if line and samples.own[i] == line)
    named = []
    for frame, count in inner.most_common(2):
        if 5 * count >= inner.total() and frame != line:
            source = samples.lines.get(frame, "")
            named.append(f"{percent(count / inner.total())} in {short_frame(frame)}{f': {source}' if source else ''}")
    return f" Of the samples at that line {enumeration(named)}." if named else ""


def advice_on_calls(trace: Trace, when: Intervals) -> str:
    """What to do about what the line that most samples show calls; "" where that isn't known to be slow."""
    line, source = sampled_line(trace, when)
    if not source:
        return ""
    if JOINS_TO_ITSELF.names(source):
        return (
            "Each call copies all that was joined so far: make the whole once and fill it in place (a ring buffer), or "
            "collect the pieces in a list and join them once at the end."
        )
    samples = trace.derived(stack_samples)
    below = [samples.stacks[i] for i in samples.inside(when).tolist() if samples.own[i] == line]
    below = [stack[: stack.index(line)] for stack in below]
    if 2 * sum(any(map(LOOKS_UP_ROWS.names, stack)) for stack in below) > len(below):
        return (
            "pandas looks up rows or numbers there: turn the columns into arrays or tensors once, before the loop "
            "(frame.to_numpy(), torch.from_numpy), and index these."
        )
    itself = 2 * sum(not stack for stack in below) > len(below)
    if MAKING_TENSORS.names(source) and itself:
        return _FROM_LISTS
    if SEARCHES.names(source) and itself:
        return (
            "index() searches from the beginning in each call: make a dict of all items and their places once, before "
            "the loop, and look them up in it."
        )
    return ""


def advice_on_line(trace: Trace, when: Intervals) -> str:
    """What to do where the line that most samples show, or what it calls, goes through items one by one; else ""."""
    if advice := advice_on_calls(trace, when):
        return advice
    line, source = sampled_line(trace, when)
    samples = trace.derived(stack_samples)
    at_line = [samples.stacks[i][0] for i in samples.inside(when).tolist() if line and samples.own[i] == line]
    makes_array = sum(MAKES_ARRAY.names(samples.lines.get(frame, "")) for frame in at_line)
    if 2 * makes_array > len(at_line):
        return (
            "NumPy makes an array of a list or a deque there, item by item: keep the items in an array or a tensor (a "
            "ring buffer), or keep a running sum instead of computing it from all of them again."
        )
    itself = sum(frame == line for frame in at_line)
    if LOOPS.names(source) and 2 * itself > len(at_line):
        return (
            "Python goes through the items of that line one by one: keep a running result, or keep the items in an "
            "array or a tensor and compute with the whole of it."
        )
    return ""


def advice_on_waits(trace: Trace, when: Intervals) -> str:
    """What to do where the line that most samples show waits for a lock of another thread; else ""."""
    _, source = sampled_line(trace, when)
    if not TAKES_LOCK.names(source):
        return ""
    return (
        "Another thread holds the lock meanwhile. Let it do its slow work without the lock: copy what it needs under "
        "the lock, and write or send it after that; or hand the data over in a queue."
    )
