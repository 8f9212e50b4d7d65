"""Calls of torchfx's operators in a trace, and which of them follow one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from _torchfx_rules.vocabulary import FILTER, LIGHT, PIPE_AGAIN
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace

__all__ = ["Call", "calls_of", "runs_of"]


@dataclass(frozen=True)
class Call:
    """One call of a filter.

    Attributes:
        row: of it. start, end: nanoseconds.
        signal, coefficients: dimensions of these arguments; () where shapes weren't recorded.
        continues: whether it filters what the call before it made, as `wave | a | b` records.
    """

    row: int
    name: str
    start: int
    end: int
    signal: tuple[int, ...]
    coefficients: tuple[int, ...]
    continues: bool


def calls_of(trace: Trace) -> tuple[Call, ...]:
    """Every call of a filter in the window's steps that isn't within another one; `trace.derived(calls_of)`."""
    events = trace.events
    rows = events.of(FILTER)
    rows = rows[trace.in_steps(rows)]
    outer = [not any(_is_filter(trace, above) for above in trace.ancestors(row)) for row in rows.tolist()]
    rows = rows[np.array(outer, np.bool_)]
    return tuple(_call(trace, row) for row in rows.tolist())


def runs_of(trace: Trace) -> list[list[Call]]:
    """Calls that follow one another on a thread, in one step, with nothing but light operators between them."""
    events, calls = trace.events, trace.derived(calls_of)
    lane = events.lane[np.array([call.row for call in calls], np.int32)].tolist()
    step = trace.step_of(np.array([call.row for call in calls], np.int32)).tolist()
    heavy = _heavy(trace)
    times = {lane: np.sort(events.ts[heavy[events.lane[heavy] == lane]]) for lane in set(lane)}
    runs: dict[int, list[list[Call]]] = {}
    before: dict[int, tuple[int, int]] = {}
    for call, here, number in zip(calls, lane, step, strict=True):
        mine = runs.setdefault(here, [])
        end, last = before.get(here, (0, -2))
        if mine and number == last and not _any_between(times[here], end, call.start):
            mine[-1].append(call)
        else:
            mine.append([call])
        before[here] = call.end, number
    return [run for mine in runs.values() for run in mine]


def _heavy(trace: Trace) -> Int32:
    """Operators outside of filters that do other work, and calls that fetch data or annotate."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    found: Int32 = rows[~events.are(LIGHT | FILTER | PIPE_AGAIN, rows)]
    return found


def _any_between(times: np.ndarray[tuple[int], np.dtype[np.int64]], start: int, end: int) -> bool:
    low, high = np.searchsorted(times, [start, end])
    return bool(high > low)


def _is_filter(trace: Trace, row: int) -> bool:
    return FILTER.names(trace.name(row))


def _call(trace: Trace, row: int) -> Call:
    shapes = _shapes(trace.events.text("Input Dims", row))
    start, end = int(trace.events.ts[row]), int(trace.events.end[row])
    signal = shapes[0] if shapes else ()
    continues = any(PIPE_AGAIN.names(trace.name(above)) for above in trace.ancestors(row))
    return Call(row, trace.name(row), start, end, signal, shapes[1] if len(shapes) > 1 else (), continues)


def _shapes(text: str | None) -> list[tuple[int, ...]]:
    found = parse_list(text)
    return [tuple(n for n in shape if isinstance(n, int)) if isinstance(shape, list) else () for shape in found]
