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
from torchwhy.trace.derived.stack_samples import LEAST, StackSamples, sampled_line, stack_samples
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import (
    INSIDE_PYTORCH,
    WRAPPER_FRAME,
    called_name,
    code_of,
    line_of,
    short_frame,
    without_line,
    without_numbers,
)
from torchwhy.trace.meaning.host_work import HOST_WORK, HostWork
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import enumeration, percent

__all__ = [
    "called_there",
    "host_work",
    "library_there",
    "line_there",
    "main_calls",
    "place_of_calls",
    "python_lines",
    "spent_below",
]

MOSTLY: Final = 0.5
"""The part of the samples, or of the time, that a kind of work needs."""

LONG_NAME: Final = 40
"""Only the module and the function are shown of a function's name longer than this."""


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


def host_work(trace: Trace, when: Intervals, *, batch: bool = False) -> tuple[HostWork, str] | None:
    """Find the kind of work that Python does during some stretches, for half of them or more.

    Args:
        trace: of a program; recorded frames are used, and samples of stacks.
        when: the stretches.
        batch: whether a batch is made there, for which some kinds of work are no mistake.

    Returns:
        The kind, and a sentence with its part of the samples ("" for recorded frames); None for no known kind.
    """
    samples = trace.derived(stack_samples)
    seen = Counter(samples.inside(when).tolist())
    line, source = sampled_line(trace, when)
    below = {i: samples.stacks[i][: samples.stacks[i].index(own)] for i in seen if (own := samples.own[i])}
    at_line = {i: count for i, count in seen.items() if line and _same_line(samples.own[i], line)}

    def part(kind: HostWork) -> float:
        shares = [0.0]
        if kind.line and kind.line.names(source):
            shares.append(sum(at_line.values()) / seen.total())
        if kind.walks and any(map(kind.walks.names, _lines_of_function(samples, seen))):
            shares.append(1.0)
        if frames := kind.frames:
            mine = sum(count for i, count in seen.items() if any(map(frames.names, below.get(i, ()))))
            shares.append(mine / max(seen.total(), 1))
        if inner := kind.inner:
            mine = sum(
                count for i, count in at_line.items() if inner.names(samples.lines.get(samples.stacks[i][0], ""))
            )
            # Half of the line's samples are enough: it also makes the arguments and takes the result.
            shares.append(sum(at_line.values()) / seen.total() if 2 * mine > sum(at_line.values()) else 0.0)
        return max(shares)

    for kind in HOST_WORK:
        if batch and not kind.slow:
            continue
        if kind.frames and 2 * _in_frames(trace, kind.frames, when) >= when.total > 0:
            return kind, ""
        if seen.total() >= LEAST and (share := part(kind)) >= MOSTLY:
            return kind, f" {percent(share)} of the samples there show {kind.shows}."
    return None


def _same_line(frame: str, line: str) -> bool:
    """Whether two frames are at one line: a comprehension is part of the function around it."""
    return frame.rpartition(": ")[0] == line.rpartition(": ")[0]


def _lines_of_function(samples: StackSamples, seen: Counter[int]) -> list[str]:
    """The sampled lines of the program's function that most samples are in; [] for no such function."""
    functions: Counter[str] = Counter()
    for i, count in seen.items():
        functions[without_numbers(samples.own[i])] += count
    name, count = functions.most_common(1)[0] if functions else ("", 0)
    if not name or count < MOSTLY * functions.total():
        return []
    return [samples.source[i] for i in seen if without_numbers(samples.own[i]) == name]


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
    if source:
        return f" Most samples taken there show {line}: {source}."
    line, source = _line_around(trace, when)
    return f" Most samples taken there are in what {line} calls: {source}." if source else ""


def _line_around(trace: Trace, when: Intervals) -> tuple[str, str]:
    """The innermost line of the program whose call most samples during some stretches are in; ("", "") without one.

    A line that runs most of the rest of the program, too, says nothing.
    """
    samples = trace.derived(stack_samples)
    inside, everywhere = Counter(samples.inside(when).tolist()), Counter(samples.which.tolist())
    found: Counter[str] = Counter()
    depth: Counter[str] = Counter()
    for i, count in inside.items():
        for place, frame in enumerate(samples.stacks[i]):
            if code_of(frame) == "program":
                found[frame] += count
                depth[frame] += count * place
    enough = [frame for frame, count in found.items() if count >= max(LEAST, MOSTLY * inside.total())]
    others = everywhere.total() - inside.total()
    for frame in sorted(enough, key=lambda frame: depth[frame] / found[frame]):
        elsewhere = sum(count for i, count in everywhere.items() if frame in samples.stacks[i]) - found[frame]
        if elsewhere < MOSTLY * others:
            return frame, samples.lines.get(frame, "")
    return "", ""


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
    stacks = [samples.stacks[i] for i in samples.inside(when).tolist() if line and samples.own[i] == line]
    frames = Counter(stack[0] for stack in stacks if stack[0] != line)
    functions = _functions(frames)
    if functions.total() and 2 * functions.most_common(1)[0][1] < functions.total():  # what it calls says more
        frames = Counter(stack[stack.index(line) - 1] for stack in stacks if stack[0] != line)
        functions = _functions(frames)
    named = []
    for function, count in functions.most_common(2):
        if 5 * count >= len(stacks):
            frame = max((one for one in frames if without_numbers(one) == function), key=lambda one: frames[one])
            source = samples.lines.get(frame, "")
            named.append(f"{percent(count / len(stacks))} in {short_frame(frame)}{f': {source}' if source else ''}")
    return f" Of the samples at that line {enumeration(named)}." if named else ""


def _functions(frames: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for frame, count in frames.items():
        found[without_numbers(frame)] += count
    return found
