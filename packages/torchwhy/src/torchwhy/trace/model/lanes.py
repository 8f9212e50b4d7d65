"""Rows of the timeline: pairs of process and thread, numbers or texts, whatever the exporter wrote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.trace.file.columns import Columns, Int32, distinct

__all__ = ["Lane", "lanes_of"]


@dataclass(frozen=True)
class Lane:
    """A row of the timeline: a thread of the host, or a stream of a device."""

    pid: str
    tid: str
    label: str
    """The thread's name where the file has it, such as "thread 123 (python)" or "stream 7"."""
    process: str = ""
    """The process's name where the file has it, such as "python", or "rank 1 python" where ranks were merged."""


def lanes_of(columns: Columns) -> tuple[Int32, list[Lane]]:
    """Number the pairs of pid and tid that occur."""
    texts, count = columns.texts, len(columns.texts)
    pids, tids = distinct(columns.pid, count), distinct(columns.tid, count)
    space = (len(pids) + 1) * (len(tids) + 1)
    small = np.dtype(np.int32 if space <= np.iinfo(np.int32).max else np.int64)
    place_pid, place_tid = np.zeros(count + 1, small), np.zeros(count + 1, small)
    place_pid[pids], place_tid[tids] = np.arange(1, len(pids) + 1), np.arange(1, len(tids) + 1)
    place_pid *= len(tids) + 1
    pair = place_pid[columns.pid] + place_tid[columns.tid]  # 0 is "missing" of each
    if space <= 4 * len(pair) + 1024:
        seen = np.zeros(space, np.bool_)
        seen[pair] = True
        present = np.flatnonzero(seen)
        number = np.cumsum(seen, dtype=np.int32) - np.int32(1)
        lane: Int32 = number[pair]
    else:  # as many threads as events
        present, inverse = np.unique(pair, return_inverse=True)
        lane = inverse.astype(np.int32).reshape(-1)
    threads, processes = _told(columns, "thread_name", lane), _told(columns, "process_name", columns.pid)
    lanes = []
    for i, code in enumerate(present.tolist()):
        of_pid, of_tid = divmod(code, len(tids) + 1)
        pid = texts[pids[of_pid - 1]] if of_pid else ""
        tid = texts[tids[of_tid - 1]] if of_tid else ""
        thread = threads.get(i, tid if not tid.removeprefix("-").isdecimal() else f"thread {tid}")
        lanes.append(Lane(pid, tid, thread, processes.get(int(pids[of_pid - 1]), "") if of_pid else ""))
    return lane, lanes


def _told(columns: Columns, what: str, whose: Int32) -> dict[int, str]:
    """What metadata events of a name show of each thread or process, by the number that `whose` has for the event."""
    named, texts = columns.arguments.get("name"), columns.texts
    if named is None or not len(named.rows) or what not in texts:
        return {}
    metadata = (columns.phase[named.rows] == ord("M")) & (columns.name[named.rows] == texts.index(what))
    rows, values = named.rows[metadata], named.values[metadata]
    return {int(whose[row]): texts[int(value)].strip() for row, value in zip(rows, values, strict=True)}
