"""Who caused an event: the operator that launched a piece of device work, and the program's own line."""

from __future__ import annotations

import numpy as np

from torchwhy.trace.file.columns import Int32, numbered
from torchwhy.trace.meaning.frames import LAUNCHER, code_of, line_of, own_frame
from torchwhy.trace.meaning.kinds import GPU_WORK, Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["launching_operators", "operators_of_work", "own_frames", "own_line", "stack_of"]


def operators_of_work(trace: Trace) -> Int32:
    """The innermost operator that launched each of `trace.links.work`, or -1; `trace.derived` computes it once.

    The launch is found by correlation; that of the work of a replayed graph in a recording of its capture, where one
    was given. Where it isn't in the trace, or no operator is around it, the operator with the work's `External id`
    takes its place.
    """
    found = trace.derived(launching_operators).copy()
    alone = np.flatnonzero(found < 0)
    found[alone] = _by_external_id(trace, trace.links.work[alone])
    return found


def launching_operators(trace: Trace) -> Int32:
    """The same by the launching call alone."""
    maker = trace.links.maker
    if not len(trace):
        return maker.copy()
    innermost = trace.calls.nearest(trace.events.kind == Kind.OPERATOR)
    return np.where(maker >= 0, innermost[maker], np.int32(-1)).astype(np.int32)


def stack_of(trace: Trace, row: int) -> list[str]:
    """The Python frames around a host event, or around the launch of device work, from the innermost."""
    host = _on_host(trace, row)
    return trace.stack(host) if host >= 0 else []


def _on_host(trace: Trace, row: int) -> int:
    """The event itself, or the launch of device work; -1 where that is unknown."""
    return int(trace.links.maker_of(np.array([row], np.int32))[0]) if trace.events.kind[row] in GPU_WORK else row


def own_frames(trace: Trace) -> Int32:
    """For every row, the innermost frame of the program's own code around it or itself, else a framework's; else -1.

    `own_frame` of all stacks at once.
    """
    events = trace.events
    rows = np.concatenate((events.rows(Kind.PYTHON), events.borrowed(Kind.PYTHON)))
    names, which = numbered(events.name[rows], len(events.texts))
    code = np.array([code_of(events.texts[name]) if name >= 0 else "" for name in names.tolist()], np.str_)
    launcher = np.array([name >= 0 and LAUNCHER in events.texts[name] for name in names.tolist()], np.bool_)
    outside = np.zeros(len(events) + 1, np.bool_)  # what called the launcher; the last is for no event
    above = rows[launcher[which]] if len(names) else rows
    while len(above := above[above >= 0]):
        outside[above] = True
        above = np.unique(trace.frames.parent[above])
    found = np.full(len(events), -1, np.int32)
    for whose in ("framework", "program"):
        wanted = np.zeros(len(events), np.bool_)
        wanted[rows] = (code == whose)[which] & ~outside[rows]
        around = trace.frames.nearest(wanted)
        found = np.where(around >= 0, around, found)
    return found


def own_line(trace: Trace, row: int) -> str:
    """The innermost line of the program's own code around an event, such as "train.py(34): step"; "" where unknown."""
    host = _on_host(trace, row)
    if host < 0 or not trace.has_stacks:
        return own_frame(stack_of(trace, row))
    frame = int(trace.derived(own_frames)[host])
    return line_of(trace.name(frame)) if frame >= 0 else ""


def _by_external_id(trace: Trace, work: Int32) -> Int32:
    """The operator with the id each piece of work names, or -1."""
    events, missing = trace.events, np.full(len(work), -1, np.int32)
    if not len(work):
        return missing
    operators = events.rows(Kind.OPERATOR)
    ids = events.integers("External id", operators)
    operators, ids = operators[ids > 0], ids[ids > 0]
    if not len(ids):
        return missing
    order = np.argsort(ids, kind="stable")
    operators, ids = operators[order], ids[order]
    wanted = events.integers("External id", work)
    i = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[i] == wanted, operators[i], missing).astype(np.int32)
