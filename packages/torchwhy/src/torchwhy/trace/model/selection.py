"""Parts of a trace, chosen before anything is computed from it: a stretch of time, some steps, some categories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.trace.file.columns import ABSENT, Argument, Columns, Flags, Int64, distinct
from torchwhy.trace.meaning.annotations import STEP, step_number
from torchwhy.trace.meaning.kinds import Kind, kinds_of
from torchwhy.trace.model.events import DAY
from torchwhy.trace.model.intervals import Intervals

__all__ = ["Part", "select"]

METADATA: Final = ord("M")


@dataclass(frozen=True)
class Part:
    """Some events of a trace.

    Attributes:
        columns: those events.
        beginning: the first start of the whole trace, nanoseconds; None where nothing was left out.
        window: the stretch of time that was requested, nanoseconds; None where none was.
    """

    columns: Columns
    beginning: int | None = None
    window: tuple[int, int] | None = None


def select(
    columns: Columns,
    *,
    window: tuple[float, float] | None = None,
    steps: str | int | Iterable[int] | None = None,
    categories: Iterable[str] | None = None,
) -> Part:
    """Keep a part of the events; see `torchwhy.load` for the arguments."""
    if window is None and steps is None and categories is None:
        return Part(columns)
    kind = kinds_of(columns)
    first, last = _span(columns, kind)
    keep, times = np.ones(len(columns), np.bool_), None
    if window is not None:
        times = _window(first, last, window)
        keep &= _during(columns, kind, Intervals.union([times[0]], [times[1]]))
    if steps is not None:
        keep &= _in_steps(columns, kind, steps)
    if categories is not None:
        keep &= _of_categories(columns, kind, categories)
    return Part(_take(columns, keep | (columns.phase == METADATA)), first, times)


def _window(first: int, last: int, window: tuple[float, float]) -> tuple[int, int]:
    """The window in the file's own nanoseconds."""
    try:
        start, end = window
        start, end = float(start), float(end)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"window must be two numbers (start, end) in microseconds from the trace's beginning, got {window!r}"
        ) from error
    length = (last - first) / 1000
    if not 0 <= start < end or not np.isfinite(start) or start > length:
        raise ArgumentError(
            f"window must be (start, end) with 0 <= start < end, in microseconds from the beginning of the trace, "
            f"which is {length:.0f} us long; got {window!r}"
        )
    return first + round(start * 1000), min(first + round(min(end, length + 1) * 1000), max(last, first + 1))


def _span(columns: Columns, kind: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """From the first to the last event that has a time near that of the others."""
    real = np.flatnonzero((kind != Kind.OTHER) & (kind <= Kind.MEMSET) & (columns.ts != ABSENT))
    if not len(real):
        return 0, 0
    ts = columns.ts[real]
    middle = int(np.partition(ts, len(ts) // 2)[len(ts) // 2])
    real = real[(ts >= middle - DAY) & (ts <= middle + DAY)]
    dur = np.clip(columns.dur[real], 0, None)
    dur[dur > DAY] = 0
    return int(columns.ts[real].min()), int((columns.ts[real] + dur).max())


def _during(columns: Columns, kind: npt.NDArray[np.uint8], times: Intervals) -> Flags:
    """What overlaps some stretches of time, the work launched then, and the launches of all work that is kept.

    A step cut by an edge is incomplete: its annotation is omitted.
    """
    start, end = columns.ts, _ends(columns)
    touched = _touches(times, start, end)
    steps = _steps(columns, kind)
    whole = times.overlap(start[steps], end[steps]) >= end[steps] - start[steps]
    touched[steps[~whole]] = False
    work = (kind >= Kind.KERNEL) & (kind <= Kind.MEMSET)
    ids = _correlations(columns)
    known = (ids != ABSENT) & (ids != 0)
    calls = kind == Kind.RUNTIME
    launched = work & known & np.isin(ids, ids[calls & touched & known])
    keep: Flags = touched | launched
    keep |= calls & known & np.isin(ids, ids[work & keep & known])
    return keep


def _in_steps(columns: Columns, kind: npt.NDArray[np.uint8], steps: str | int | Iterable[int]) -> Flags:
    """The events of the host that begin within some recorded steps, and the device work launched there."""
    rows = _steps(columns, kind)
    numbers = np.array([step_number(columns.texts[i]) for i in columns.name[rows]], np.int64)
    known = sorted(set(numbers.tolist()))
    if not known:
        raise ArgumentError(
            "steps needs steps recorded by torch.profiler's schedule (ProfilerStep#N), and the trace has no steps; "
            "choose a part of it with window"
        )
    wanted = _step_numbers(steps, known)
    chosen = rows[np.isin(numbers, wanted)]
    times = Intervals.union(columns.ts[chosen], np.maximum(_ends(columns)[chosen], columns.ts[chosen] + 1))
    begins = times.overlap(columns.ts, columns.ts + 1) > 0
    work = (kind >= Kind.KERNEL) & (kind <= Kind.DEVICE_ANNOTATION)
    keep = begins & ~work
    ids = _correlations(columns)
    known_ids = (ids != ABSENT) & (ids != 0)
    calls = kind == Kind.RUNTIME
    launched = work & known_ids & np.isin(ids, ids[calls & keep & known_ids])
    # Work whose launch isn't in the file at all belongs to the step it ran in.
    alone = work & ~(known_ids & np.isin(ids, ids[calls & known_ids]))
    keep |= launched | (alone & begins)
    keep[rows] = np.isin(numbers, wanted)
    return keep


def _step_numbers(steps: str | int | Iterable[int], known: list[int]) -> list[int]:
    form = f'steps must be "A-B", (A, B) or a list of numbers, among the recorded {known[0]} to {known[-1]}'
    if isinstance(steps, str):
        first, dash, last = (part.strip() for part in steps.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ArgumentError(f"{form}; got {steps!r}")
        numbers = list(range(int(first), int(last or first) + 1))
    elif isinstance(steps, int):
        numbers = [steps]
    else:
        try:
            numbers = [int(step) for step in steps]
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{form}; got {steps!r}") from error
        if isinstance(steps, tuple) and len(numbers) == 2:
            numbers = list(range(numbers[0], numbers[1] + 1))
    missing = [number for number in numbers if number not in set(known)]
    if missing or not numbers:
        raise ArgumentError(f"{form}; got {steps!r}")
    return numbers


def _of_categories(columns: Columns, kind: npt.NDArray[np.uint8], categories: Iterable[str]) -> Flags:
    """Events of some categories, by the file's name for them or by the kind it means."""
    names = [categories] if isinstance(categories, str) else list(categories)
    here = {columns.texts[i].lower(): i for i in distinct(columns.category, len(columns.texts)).tolist()}
    by_kind = {member.name.lower(): member for member in Kind if member is not Kind.OTHER}
    keep = np.zeros(len(columns), np.bool_)
    for name in names:
        if not isinstance(name, str) or name.lower() not in {*here, *by_kind}:
            raise ArgumentError(
                f"categories must be among {', '.join(sorted(by_kind))}, or the file's own "
                f"({', '.join(sorted(here))}); got {name!r}"
            )
        if name.lower() in by_kind:
            keep |= kind == by_kind[name.lower()]
        if name.lower() in here:
            keep |= columns.category == here[name.lower()]
    return keep


def _steps(columns: Columns, kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Rows of recorded steps with a number."""
    named = np.zeros(len(columns.texts) + 1, np.bool_)
    for i, text in enumerate(columns.texts):
        named[i] = STEP.names(text) and step_number(text) is not None
    return np.flatnonzero((kind == Kind.ANNOTATION) & named[columns.name] & (columns.ts != ABSENT))


def _ends(columns: Columns) -> Int64:
    """Ends of events; those without a time or with an absurd duration end where they begin."""
    proper = (columns.ts != ABSENT) & (columns.dur >= 0) & (columns.dur <= DAY)
    found: Int64 = columns.ts + np.where(proper, columns.dur, np.int64(0))
    return found


def _touches(times: Intervals, start: Int64, end: Int64) -> Flags:
    """Whether each event overlaps the times; those without a duration if they lie in them."""
    found: Flags = (start != ABSENT) & (times.overlap(start, np.maximum(end, start + 1)) > 0)
    return found


def _correlations(columns: Columns) -> Int64:
    found = np.full(len(columns), ABSENT, np.int64)
    argument = columns.arguments.get("correlation")
    if argument is not None:
        found[argument.rows] = argument.values
    return found


def _take(columns: Columns, keep: Flags) -> Columns:
    """The chosen events with their arguments; texts, which few events own alone, stay as they are."""
    place = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    arguments = {}
    for key, argument in columns.arguments.items():
        chosen = keep[argument.rows]
        arguments[key] = Argument(place[argument.rows[chosen]], argument.values[chosen])
    parts = ("phase", "ts", "dur", "category", "name", "pid", "tid", "flow", "offset")
    return replace(columns, **{part: getattr(columns, part)[keep] for part in parts}, arguments=arguments)
